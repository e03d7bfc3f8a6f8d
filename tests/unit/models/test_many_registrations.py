"""Several writers of one model at once, and writers that are killed at any moment."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cargobike import models, project
from cargobike.core.errors import GateError, StoreError
from cargobike.core.running.process_names import name_of_this_process
from cargobike.models.catalogue.catalogue import Catalogue
from cargobike.models.facts import AliasMoved, AliasRemoved
from cargobike.models.flavours.flavour import Saved
from cargobike.models.writing import Draft, commit_draft, sweep_dead, sweep_unlisted
from cargobike.store.assets.claims import Claim, Writing
from support.scripts import run_script

_MANY = """
import os, sys

from cargobike import models, project
from cargobike.errors import CargobikeError


def write(number):
    project.use("project")
    for turn in range(5):
        version = models.register("digits", len, metrics={"accuracy": number + turn / 10, "writer": number})
        try:
            version.promote("champion", when="accuracy > champion.accuracy")
        except CargobikeError:
            pass
    os._exit(0)


models.register, models.get  # loaded before processes are forked
pids = []
for number in range(4):
    pid = os.fork()
    if not pid:
        try:
            write(number)
        finally:
            os._exit(1)
    pids.append(pid)
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
"""

_KILLED = """
import json, os, signal, sqlite3

from cargobike import models, project
from cargobike.core.registering.tracing import all_edges
from cargobike.models import signing
from cargobike.store.files import patient

models.register, models.get, list(all_edges(project.current()))  # loaded once, before processes are forked
os.fsync = lambda _: None  # a process that is killed loses nothing that it had handed to the kernel
connect = sqlite3.connect


def connect_at_once(*arguments, **options):
    connection = connect(*arguments, **options)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


sqlite3.connect = connect_at_once
place = os.getcwd()
METHODS = ("read", "write", "create", "stat", "delete")


def dying_at(moment):
    seen = 0

    def step():
        nonlocal seen
        seen += 1
        if seen == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(method):
        def call(self, *arguments, **options):
            step()  # the moment after a call is the one before the next
            return method(self, *arguments, **options)
        return call

    for name in METHODS:
        setattr(patient.PatientStorage, name, wrapped(getattr(patient.PatientStorage, name)))


def in_child(work):
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1]


def write(folder, moment=0):
    project.use(folder)
    if moment:
        dying_at(moment)
    version = models.register("digits", lambda rows: [len(row) for row in rows], example=["a"])
    version.promote("champion")
    models.retain("digits", keep=2)
    os._exit(0)


def look(folder):
    project.use(folder)
    versions = models.list("digits")
    seen = {
        "versions": [version.version for version in versions],
        "all": len(models.list("digits", removed=True)),
        "champion": models.get("digits@champion").version,
        "problems": [problem for version in versions for problem in version.verify()],
        "listed": sorted(version.manifest.token for version in versions),
    }
    with open(place + ".said", "a") as file:
        print(json.dumps([folder, seen]), file=file)
    os._exit(0)


moment = 0
while True:
    moment += 1
    folder = f"{place}/{moment}"
    for _ in range(2):
        assert in_child(lambda: write(folder)) == 0
    status = in_child(lambda: write(folder, moment))
    if status == 0:
        break
    assert os.WIFSIGNALED(status), status
    assert in_child(lambda: look(folder)) == 0
    assert in_child(lambda: write(folder)) == 0
    assert in_child(lambda: look(folder)) == 0
print(moment)
"""


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_four_processes_get_numbers_without_gaps_and_the_best_wins(tmp_path: Path) -> None:
    assert run_script(tmp_path, _MANY) == [0] * 4

    project.use(tmp_path / "project")
    versions = models.list("digits")
    assert [version.version for version in versions] == list(range(20, 0, -1))
    seen = [(version.metrics["writer"], version.metrics["accuracy"]) for version in reversed(versions)]
    assert len(set(seen)) == 20
    for writer in range(4):
        mine = [accuracy for number, accuracy in seen if number == writer]
        assert mine == sorted(mine), "each writer's own are in its order"
    assert models.get("digits@champion") == models.best("digits", "accuracy"), "no promotion was judged on old figures"
    moves = [move for move in models.history("digits") if isinstance(move, AliasMoved)]
    champions = [models.get(f"digits:{move.version}").metrics["accuracy"] for move in moves]
    assert champions == sorted(champions)
    assert [move.before for move in moves] == [None, *(move.version for move in moves[:-1])]
    left = files_below(tmp_path / "project" / "models" / "digits")
    tokens = {version.manifest.token for version in versions}
    assert {path.split("/")[1] for path in left if path.startswith("files/")} == tokens
    assert not [path for path in left if path.startswith("writing/")]


def test_a_writer_that_is_killed_at_any_moment_leaves_nothing_half(tmp_path: Path) -> None:
    moments = run_script(tmp_path / "projects", _KILLED)

    answers = [json.loads(line) for line in (tmp_path / "projects.said").read_text().splitlines()]
    assert len(answers) == 2 * (moments - 1)
    assert moments > 40, "so many moments there are at least"
    for (folder, before), (same, after) in zip(answers[::2], answers[1::2], strict=True):
        assert folder == same
        assert before["problems"] == after["problems"] == []
        assert before["all"] in (2, 3)
        assert before["champion"] in (2, 3)
        assert after["all"] == before["all"] + 1
        assert after["champion"] == after["all"]
        assert after["versions"] == [after["all"], after["all"] - 1]
        left = files_below(Path(folder) / "models" / "digits")
        assert {path.split("/")[1] for path in left if path.startswith("files/")} == set(after["listed"]), folder
        assert not [path for path in left if path.startswith("writing/")], folder


def draft(tmp_path: Path) -> Draft:
    file = tmp_path / "model.bin"
    file.write_bytes(b"weights")
    return Draft(name="digits", saved=Saved(flavour="files"), files={"model/model.bin": file})


def test_files_of_living_writers_are_not_swept(tmp_path: Path) -> None:
    catalogue = Catalogue(project.prepare())
    catalogue.announce("digits")
    writing = Writing(catalogue.storage, "0123456789ab", "0123456789ab", "models/digits/writing")
    catalogue.storage.write("models/digits/files/0123456789ab/model/x", b"x")
    assert sweep_dead(catalogue, "digits") == []
    assert sweep_unlisted(catalogue, "digits") == []
    assert commit_draft(catalogue, draft(tmp_path)).version == 1
    assert catalogue.storage.read("models/digits/files/0123456789ab/model/x") == b"x"
    writing.end()
    assert sweep_unlisted(catalogue, "digits") == ["models/digits/files/0123456789ab"]
    assert models.get("digits").verify() == []


def test_a_writer_that_was_silent_for_a_day_and_comes_back_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue(project.prepare())

    def sweep_meanwhile(self: Writing) -> None:
        claim = Claim(name_of_this_process(), "0" * 12, time.time() - 25 * 3600)
        catalogue.storage.write(self.path, msgspec.json.encode(claim))
        assert len(sweep_dead(catalogue, "digits")) == 1

    monkeypatch.setattr(Writing, "renew", lambda self: sweep_meanwhile(self) if self._renewed else _first(self))

    def _first(self: Writing) -> None:
        self._renewed = 1.0
        catalogue.storage.write(self.path, msgspec.json.encode(Claim(name_of_this_process(), "0" * 12, time.time())))

    with pytest.raises(StoreError, match="was swept away, since this process had been silent"):
        commit_draft(catalogue, draft(tmp_path))
    assert catalogue.find("digits") is not None
    assert models.list() == []


def test_a_file_that_changes_while_it_is_kept_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue, one = Catalogue(project.prepare()), draft(tmp_path)
    write = type(catalogue.storage).write

    def grow(self: object, path: str, data: object) -> None:
        write(catalogue.storage, path, data)  # type: ignore[arg-type]
        if path.endswith("model.bin"):
            one.files["model/model.bin"].write_bytes(b"weights and more")

    monkeypatch.setattr(type(catalogue.storage), "write", grow)
    with pytest.raises(ValueError, match="changed while it was being kept"):
        commit_draft(catalogue, one)
    assert not [path for path in files_below(tmp_path / "models") if "/files/" in path]


_STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["promote", "gated", "drop", "remove"]), st.integers(1, 4)),
    max_size=12,
)


@pytest.fixture
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def connect_at_once(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(sqlite3, "connect", connect_at_once)


@pytest.mark.usefixtures("_no_waiting_for_the_disk")
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_STEPS)
def test_any_interleaving_leaves_a_history_that_fits(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str, int]]
) -> None:
    """Three handles that look at different times; whatever they do, the facts fold to one history."""
    project.use(tmp_path_factory.mktemp("interleaved"))
    try:
        for number in range(4):
            models.register("digits", len, metrics={"accuracy": [0.3, 0.1, 0.4, 0.2][number]})
        handles = [{number: models.get(f"digits:{number}") for number in range(1, 5)} for _ in range(3)]
        champion: int | None = None
        gone: set[int] = set()
        for who, what, number in steps:
            accuracy = [0.3, 0.1, 0.4, 0.2]
            try:
                if what == "remove":
                    models.remove(f"digits:{number}")
                    assert number != champion
                    assert number not in gone
                    gone.add(number)
                elif what == "drop":
                    assert models.remove_alias("digits", "champion") == champion
                    champion = None
                else:
                    gate = "accuracy > champion.accuracy" if what == "gated" else ""
                    promotion = handles[who][number].promote("champion", when=gate)
                    assert promotion.before == champion
                    assert number not in gone
                    assert not gate or champion is None or accuracy[number - 1] > accuracy[champion - 1]
                    champion = number
            except GateError:
                assert champion is not None
                assert accuracy[number - 1] <= accuracy[champion - 1]
            except (LookupError, ValueError):
                assert number in gone or champion in {None, number}
        aliases = {} if champion is None else {"champion": champion}
        assert Catalogue(project.current()).model("digits").state.aliases == aliases
        before = None
        for move in models.history("digits"):
            assert move.before == before
            before = None if isinstance(move, AliasRemoved) else move.version
        assert before == champion
    finally:
        project.use(None)


def test_threads_that_promote_at_once_are_judged_one_after_the_other() -> None:
    versions = [models.register("digits", len, metrics={"accuracy": number / 10}) for number in range(6)]
    start = threading.Barrier(len(versions))
    refused: list[int] = []

    def promote(version: models.ModelVersion) -> None:
        start.wait(30)
        try:
            version.promote("champion", when="accuracy > champion.accuracy")
        except GateError:
            refused.append(version.version)

    threads = [threading.Thread(target=promote, args=(version,)) for version in versions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    moves = [move.version for move in models.history("digits") if isinstance(move, AliasMoved)]
    assert moves == sorted(moves)
    assert sorted([*moves, *refused]) == [1, 2, 3, 4, 5, 6]
    assert models.get("digits@champion").version == 6
