"""Commands that run on the machine that has the project: what is allowed, and how it goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cargobike import client
from cargobike.cli.app import load_command
from cargobike.core.errors import ForbiddenError, InvalidInputError, NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.products import commands, products
from cargobike.remote.answers import CallOpened, CommandState, FileReceived
from cargobike.remote.calling.running import prepare
from cargobike.remote.commands.desk import Desk
from cargobike.remote.commands.parsing import parse
from cargobike.remote.commands.rules import allowed, declared
from cargobike.ui.web.access import Access
from support.remote_server import TOKEN, served
from support.web_project import LIVELY, sample_project

_SLOW = "import time\n\ndef main():\n    print('begun', flush=True)\n    time.sleep(600)\n"


def _leaves(command: Any, words: list[str]) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    for name, one in (inner or {}).items():
        yield from _leaves(one, [*words, name])
    if inner is None or command.invoke_without_command:
        yield " ".join(words), command


def test_every_command_is_declared_with_parameters_that_it_has() -> None:
    known = declared()
    leaves = dict(leaf for name in commands(products()) for leaf in _leaves(load_command(name), [name]))
    assert set(leaves) == set(known)
    for words, afar in known.items():
        names = {parameter.name for parameter in leaves[words].params}
        assert names >= {*afar.sends, *afar.brings, *afar.texts, *afar.raised}, words
        assert afar.role != "read" or not afar.sends or set(afar.sends) <= set(afar.raised), f"{words} reads files"


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("ls --json -n 3", "read"),
        ("tag last", "read"),
        ("tag last good", "run"),
        ("models promote digits:3 champion", "run"),
        ("rm last --yes", "administer"),
        ("doctor", "run"),
        ("doctor --reindex", "administer"),
        ("run in/train.py:main --param=lr=0.1", "run"),
    ],
)
def test_roles_are_enforced_for_each_command(line: str, role: str) -> None:
    order = ("read", "run", "administer")
    for caller in order:
        if order.index(caller) < order.index(role):
            with pytest.raises(ForbiddenError, match=f"needs the role '{role}'; yours is '{caller}'"):
                allowed(line.split(), caller)  # type: ignore[arg-type]
        else:
            assert allowed(line.split(), caller).role == role  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("data head /etc/passwd", "looks like a path or an address"),
        ("data head s3://bucket/secret", "looks like a path or an address"),
        ("data head ../../x", "looks like a path or an address"),
        ("export last /tmp/stolen.zip", "is a path"),
        ("export last out/../../x.zip", "is a path"),
        ("run /srv/train.py:main", "looks like a path"),
        ("run in/../../train.py:main", "looks like a path"),
        ("data write file:///etc/passwd x", "looks like a path"),
        ("ui", "runs only where it is called: it is the server"),
        ("horovodrun -np 2 python x.py", "runs only where it is called"),
        ("ls --nonsense", "was called wrongly"),
        ("models ls a b c", "does not take"),
        ("--project /tmp ls", "A command comes first"),
        ("--server http://x ls", "A command comes first"),
        ("", "A command comes first"),
    ],
)
def test_what_could_reach_elsewhere_is_refused(line: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        allowed(line.split(), "administer")


def test_unknown_commands_name_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="Did you mean 'lineage'"):
        allowed(["linage"], "administer")
    with pytest.raises(NotFoundError, match="has no command 'promot'"):
        allowed(["models", "promot"], "administer")


def test_command_lines_are_written_as_the_parser_read_them() -> None:
    line = ["models", "tag", "digits:3", "a", "b", "--remove", "old", "--json"]
    assert parse(line).rewritten(lambda _, text: text) == [
        *("models", "tag", "--remove=old", "--json", "--", "digits:3", "a", "b")
    ]
    assert parse(["export", "last", "x.zip", "--no-checkpoints"]).rewritten(lambda _, text: text.upper()) == [
        *("export", "--no-checkpoints", "--", "LAST", "X.ZIP")
    ]
    assert parse(["logs", "last", "-f"]).values == {"experiment": ["last"], "follow": []}


def test_paths_of_this_machine_become_files_that_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("def main(): return 1\n")
    Path("space.yaml").write_text("x: [1, 2]\n")
    (tmp_path / "more").mkdir()
    line = ["run", "train.py:main", "--space", str(tmp_path / "space.yaml"), "--name", "train.py"]
    outgoing = prepare(parse(line), ["more"])
    assert outgoing.arguments == ["run", "--space=in/space.yaml", "--name=train.py", "--", "in/train.py:main"]
    assert sorted(name for _, name in outgoing.sendings) == ["more", "space.yaml", "train.py"]
    out = prepare(parse(["export", "last", "deep/down/x.zip"]))
    assert (out.arguments[-1], out.targets) == ("out/x.zip", {"x.zip": Path("deep/down/x.zip")})
    with pytest.raises(InvalidInputError, match="no file 'nothing' here"):
        prepare(parse(line), ["nothing"])
    with pytest.raises(InvalidInputError, match="runs only where it is called"):
        prepare(parse(["tensorboard"]))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectFolder:
    return sample_project(tmp_path_factory.mktemp("far") / ".cargobike")


@pytest.fixture(scope="module")
def server(project: ProjectFolder) -> Iterator[str]:
    with served(project) as address:
        yield address


def _cargobike(server: str, *arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CARGOBIKE_TOKEN": TOKEN, "CARGOBIKE_PROJECT": str(cwd / "none"), **variables}
    return subprocess.run(
        [sys.executable, "-m", "cargobike.cli", *(("--server", server) if server else ()), *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=120,
        check=False,
    )


def test_a_command_prints_here_what_it_prints_there(server: str, project: ProjectFolder, tmp_path: Path) -> None:
    listed = _cargobike(server, "ls", "--json", cwd=tmp_path)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert LIVELY in listed.stdout
    wrong = _cargobike("", "show", "20990101-nothing", cwd=tmp_path, CARGOBIKE_SERVER=server)
    assert wrong.returncode == 1
    assert "20990101-nothing" in wrong.stderr
    assert not (tmp_path / "none").exists()
    assert not list((project.root / "uploads").glob("*/in/*"))


def test_files_travel_there_and_back(server: str, project: ProjectFolder, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("FACTOR = 3\n")
    script = "from helper import FACTOR\n\ndef main(x):\n    print('printed there')\n    return x * FACTOR\n"
    (tmp_path / "train.py").write_text(script)
    arguments = ("--send", "helper.py", "run", "train.py:main", "--param", "x=14", "--workers", "0", "--name", "far")
    ran = _cargobike(server, *arguments, cwd=tmp_path)
    assert (ran.returncode, "Best: 42" in ran.stdout) == (0, True), ran.stderr
    exported = _cargobike(server, "export", "far", "kept/far.zip", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert (tmp_path / "kept/far.zip").read_bytes()[:2] == b"PK"
    assert "Brought kept/far.zip" in exported.stderr
    assert [file.name for file in (project.root / "uploads").glob("*/in/*.py")]


def test_what_would_be_asked_there_is_asked_here(server: str, tmp_path: Path) -> None:
    refused = _cargobike(server, "rm", "last", cwd=tmp_path)
    assert refused.returncode == 1
    assert "Run `cargobike rm -- last` on the server?" in refused.stdout


def test_local_commands_say_so(server: str, tmp_path: Path) -> None:
    refused = _cargobike(server, "tensorboard", cwd=tmp_path)
    assert refused.returncode == 1
    assert "listens on a port" in refused.stderr
    both = _cargobike(server, "--project", "x", "ls", cwd=tmp_path)
    assert (both.returncode, "exclude each other" in both.stderr) == (2, True)


def test_ctrl_c_interrupts_the_command_there(server: str, project: ProjectFolder, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(_SLOW)
    environment = {**os.environ, "CARGOBIKE_TOKEN": TOKEN}
    process = subprocess.Popen(
        [sys.executable, "-m", "cargobike.cli", "--server", server, "run", "slow.py:main", "--workers", "1"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        give_up_at = time.monotonic() + 60
        while not any("begun" in log.read_text() for log in project.root.glob("experiments/*/trials/*/stdout.log")):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < give_up_at
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, printed
    assert "Interrupting the command on the server" in printed


class TestDesk:
    """The desk alone, with commands that print."""

    @pytest.fixture
    def desk(self, tmp_path: Path) -> Iterator[Desk]:
        desk = Desk(sample_project(tmp_path / "project"), patience_s=0.2)
        yield desk
        desk.close()

    def test_paths_of_files_stay_inside(self, desk: Desk) -> None:
        call = desk.prepare("run")
        assert desk.receive(call.id, "deep/x.txt", b"abc", 0) == 3
        assert desk.receive(call.id, "deep/x.txt", b"d", 3) == 4
        assert (call.folder / "in/deep/x.txt").read_bytes() == b"abcd"
        for path in ("../x", "/etc/x", "a/../../x", "a\0b", "in/./x\n"):
            with pytest.raises(InvalidInputError):
                desk.receive(call.id, path, b"x", 0)
        with pytest.raises(InvalidInputError, match="goes on at 4"):
            desk.receive(call.id, "deep/x.txt", b"d", 9)
        (call.folder / "in/link").symlink_to("/tmp")
        with pytest.raises(InvalidInputError):
            desk.receive(call.id, "link", b"x", 0)

    def test_a_command_that_is_not_read_any_more_is_interrupted(self, desk: Desk) -> None:
        call = desk.prepare("run")
        desk.receive(call.id, "waiting.py", b"import time\n\n\ndef train():\n    time.sleep(600)\n", 0)
        process = desk.start(call.id, ["run", "in/waiting.py:train", "--quiet"]).process
        assert process is not None
        give_up_at = time.monotonic() + 60
        while not process.has_ended:
            assert time.monotonic() < give_up_at
            time.sleep(0.05)
        assert process.is_cancelled

    def test_roles_belong_to_the_call(self, desk: Desk) -> None:
        call = desk.prepare("read")
        with pytest.raises(ForbiddenError):
            desk.start(call.id, ["stop", "last"])


def test_without_a_token_commands_only_read(project: ProjectFolder, tmp_path: Path) -> None:
    with served(project, Access()) as address:
        connection = client.connect(address).connection
        with pytest.raises(ForbiddenError, match="needs the role 'run'"):
            connection.post(["commands"], CommandState, {"arguments": ["stop", "last"]})
        with pytest.raises(ForbiddenError, match="role 'run'"):
            connection.post(["commands", "calls"], CallOpened)
        remote = client.connect(address)
        assert remote.commands.run(["version", "--json"]).json()["cargobike"]  # type: ignore[index]
        assert {rule.command: rule.role for rule in remote.commands.rules().commands}["rm"] == "administer"
        with pytest.raises(NotFoundError):
            connection.get(["commands", "a-guess"], CommandState)
        with pytest.raises(NotFoundError):
            connection.post(["commands", "calls", "x", "files"], FileReceived, {"path": "a", "content": ""})
