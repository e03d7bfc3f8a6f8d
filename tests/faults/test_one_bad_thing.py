"""Damaged experiments among good ones: none of them hides or stops the others, and each can be removed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from zlib import crc32

import pytest
from typer.testing import CliRunner, Result

from cargobike import experiment
from cargobike.cli.app import app
from cargobike.core.layout import ProjectFolder
from cargobike.testing.stores import JournalBuilder
from support.web_project import client_of

GOOD = ("20270101-000000-good", "20270103-000000-good")
_LINE_KEYS = b',"line":'


@pytest.fixture(autouse=True)
def _deadline() -> Iterator[None]:
    """Fail instead of waiting for a pipe that no process writes to."""

    def too_long(signum: int, frame: FrameType | None) -> None:
        raise AssertionError("a command waits for ever")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def chained(bodies: list[bytes]) -> bytes:
    """Make lines with right numbers and checksums, as a forger would."""
    lines, crc = [], b"00000000"
    for number, body in enumerate(bodies, 1):
        sealed = b'%b,"line":%d,"prev":"%b"' % (body, number, crc)
        crc = b"%08x" % crc32(sealed)
        lines.append(b'%b,"crc":"%b"}\n' % (sealed, crc))
    return b"".join(lines)


def bodies(journal: Path) -> list[bytes]:
    return [line[: line.rindex(_LINE_KEYS)] for line in journal.read_bytes().splitlines()]


def insert(body: bytes) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        journal = folder / "journal.jsonl"
        lines = bodies(journal)
        journal.write_bytes(chained([*lines[:3], body, *lines[3:]]))

    return damage


def change(pattern: bytes, replacement: bytes) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        journal = folder / "journal.jsonl"
        journal.write_bytes(chained([re.sub(pattern, replacement, body) for body in bodies(journal)]))

    return damage


def replace(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)

    return damage


def instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        shutil.rmtree(folder)
        make(folder)

    return damage


def loop(path: Path) -> None:
    path.symlink_to(path.name)


REPORT = b'{"fact":"reported","at":1.0,"trial":0,"step":%d,"metrics":{"value":0.5}'
NESTED = b'{"fact":"trial-suggested","at":1.0,"trial":7,"params":{"x":%b%b}'
FUTURE = {"journal_bytes": 10, "at": 9e12, "host": "far away", "pid": 3}

DAMAGES: dict[str, Callable[[Path], None]] = {
    "step": insert(REPORT % 2**63),
    "huge-step": insert(REPORT % 10**400),
    "nested": insert(NESTED % (b"[" * 50_000, b"]" * 50_000)),
    "nested-a-bit": insert(NESTED % (b"[" * 900, b"]" * 900)),
    "trial": change(rb'"trial":0', b'"trial":99999999999999999999'),
    "late": change(rb'"at":[0-9.]+', b'"at":1e300'),
    "early": change(rb'"at":[0-9.]+', b'"at":-1e17'),
    "newer": change(rb'"version":\d+', b'"version":99'),
    "unknown": insert(b'{"fact":"hyperjump","at":1.0'),
    "pipe": replace("journal.jsonl", os.mkfifo),
    "folder": replace("journal.jsonl", Path.mkdir),
    "dangling": replace("journal.jsonl", lambda path: path.symlink_to("nowhere")),
    "loop": replace("journal.jsonl", loop),
    "device": replace("journal.jsonl", lambda path: path.symlink_to("/dev/zero")),
    "garbage": replace("journal.jsonl", lambda path: path.write_bytes(bytes(range(256)) * 1000)),
    "empty": replace("journal.jsonl", Path.touch),
    "long-line": replace("journal.jsonl", lambda path: path.write_bytes(b"x" * 3_000_000)),
    "lock-pipe": replace("driver.lock", os.mkfifo),
    "lock-folder": replace("driver.lock", Path.mkdir),
    "lock-loop": replace("driver.lock", loop),
    "notes-pipe": replace("annotations.jsonl", os.mkfifo),
    "head-pipe": replace("remote.json", os.mkfifo),
    "head-future": replace("remote.json", lambda path: path.write_text(json.dumps(FUTURE))),
    "code-pipe": replace("code/snapshot.json", os.mkfifo),
    "views-pipe": replace("tensorboard", os.mkfifo),
    "no-folder": instead(lambda path: path.write_text("a file")),
    "pipe-for-folder": instead(os.mkfifo),
    "loop-for-folder": instead(loop),
}


def id_of(damage: str) -> str:
    return f"20270102-000000-{list(DAMAGES).index(damage):04x}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectFolder:
    project = ProjectFolder(tmp_path / "project")
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(project.root))
    for one in GOOD:
        write(project, one, name="fine")
    for name, damage in DAMAGES.items():
        write(project, id_of(name), name=name)
        damage(project.experiments / id_of(name))
    return project


def write(project: ProjectFolder, experiment_id: str, name: str) -> None:
    journal = JournalBuilder(project, experiment_id, name=name)
    journal.complete(0.5, lr=0.1)
    journal.end()


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), (arguments, done.exception)
    return done


def test_commands_show_the_good_ones_and_name_the_bad(project: ProjectFolder) -> None:
    for options in ([], ["--json"]):
        done = run("ls", "--limit", "100", *options)
        assert done.exit_code == 0, done.output
        assert all(one in done.stdout for one in GOOD)
    for options in ([], ["--reindex"]):
        said = run("doctor", *options).stdout
        for name in ("step", "huge-step", "nested", "trial", "newer", "unknown", "pipe", "folder", "dangling", "loop"):
            assert re.search(rf"problem +{id_of(name)}", said), (name, said)
    assert run("show", "last").exit_code == 0
    assert run("compare", *GOOD).exit_code == 0
    assert run("data", "ls").exit_code == 0
    written = run("tensorboard", "--files", "--limit", "100")
    assert written.exit_code == 0, written.output
    assert all(f"{one}/tensorboard" in written.stdout for one in GOOD)
    assert {one.id for one in experiment.list()} >= set(GOOD)
    assert [trial.value for trial in experiment.load(GOOD[0]).trials] == [0.5]


def test_commands_about_a_bad_one_say_why_or_work(project: ProjectFolder) -> None:
    for name in DAMAGES:
        for command in ("show", "logs"):
            run(command, id_of(name))
        run("compare", GOOD[0], id_of(name))
        run("export", id_of(name), str(project.root.parent / f"{name}.zip"))


def test_pages_and_the_api_show_the_good_ones(project: ProjectFolder) -> None:
    with client_of(project) as client:
        listed = client.get("/api/v1/experiments?limit=100")
        assert listed.status_code == 200, listed.text
        assert all(one in listed.text for one in GOOD)
        assert client.get("/").status_code == 200
        assert client.get(f"/experiments/{GOOD[0]}").status_code == 200
        for name in DAMAGES:
            for address in (f"/api/v1/experiments/{id_of(name)}", f"/experiments/{id_of(name)}"):
                answer = client.get(address)
                assert answer.status_code in {200, 404, 503}, (name, answer.status_code)
                assert "Internal Server Error" not in answer.text


def test_each_can_be_removed(project: ProjectFolder) -> None:
    done = run("rm", "--yes", *(id_of(name) for name in DAMAGES))
    assert done.exit_code == 0, done.output
    assert sorted(os.listdir(project.experiments)) == sorted(GOOD)
    assert run("doctor").exit_code == 0
