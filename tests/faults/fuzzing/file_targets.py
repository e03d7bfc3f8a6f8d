"""Files: journals and the index made of them, archives, checkpoints, what is served to workers, shared storage."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentStarted, encode_fact
from cargobike.core.layout import ProjectFolder
from cargobike.core.record import fold
from cargobike.experiments.driving.served_files import ServedFiles
from cargobike.experiments.index.opening import open_index
from cargobike.experiments.trial.checkpoints.folder import DamagedError, verify, write_folder
from cargobike.experiments.trial.checkpoints.surroundings import Surroundings
from cargobike.experiments.trial.sent_reports import KeptReport, Reports
from cargobike.store.files.remote import RemoteProject, remote_of
from cargobike.store.history.annotations import read_annotations
from cargobike.store.history.archive import MANIFEST, take_in
from cargobike.store.journal.journal import read_journal
from cargobike.workers.files import requests
from faults.fuzzing.target import Target
from support.sample_records import hostile_story, lively_story

ID = "20270115-080000-test"
_YET = (CargobikeError, OverflowError)


def file_targets(folder: Path) -> Iterator[Target]:
    """Yield the readers of files."""
    folder.mkdir(parents=True)
    for make in (
        _raw_journals,
        _sealed_journals,
        _index,
        _archives,
        _checkpoints,
        _served_files,
        _remote_marks,
        _heads,
        _annotations,
    ):
        room = folder / make.__name__
        room.mkdir()
        yield make(room)


def _lines(count: int = 40) -> list[bytes]:
    first, *rest = lively_story().facts[:count]
    assert isinstance(first, ExperimentStarted)
    return [encode_fact(fact) for fact in (msgspec.structs.replace(first, id=ID), *rest)]


def _seal(lines: list[bytes]) -> bytes:
    """Give lines their numbers and checksums, so that a reader believes them."""
    sealed, before = [], 0
    for number, line in enumerate(lines, 1):
        body = b'%b,"line":%d,"prev":"%08x"' % (line.rstrip()[:-1], number, before)
        before = zlib.crc32(body)
        sealed.append(b'%b,"crc":"%08x"}\n' % (body, before))
    return b"".join(sealed)


def _raw_journals(room: Path) -> Target:
    path = room / "journal.jsonl"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        fold(read_journal(path, EXPERIMENT_FACTS))

    return Target("journal", run, (_seal(_lines()),), "bytes", weight=20)


def _sealed_journals(room: Path) -> Target:
    path = room / "journal.jsonl"

    def run(data: bytes) -> None:
        path.write_bytes(_seal_array(data))
        fold(read_journal(path, EXPERIMENT_FACTS))

    return Target("journal-facts", run, _arrays(), "json", allowed=_YET, weight=60)


def _arrays() -> tuple[bytes, ...]:
    """Return journals as arrays of facts, whose structure can be changed before they are sealed."""
    hostile = [encode_fact(fact) for fact in hostile_story().facts[:30]]
    return (b"[" + b",".join(_lines(12)) + b"]", b"[" + b",".join(_lines(40)) + b"]", b"[" + b",".join(hostile) + b"]")


def _seal_array(data: bytes) -> bytes:
    try:
        facts = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return _seal(data.split(b"\n"))
    return _seal([bytes(fact) for fact in facts])


def _index(room: Path) -> Target:
    project = ProjectFolder(room)
    project.experiment(ID).root.mkdir(parents=True)

    def run(data: bytes) -> None:
        project.experiment(ID).journal.write_bytes(_seal_array(data))
        with open_index(project) as index:
            index.sync()
            for row in index.experiments():
                index.trials(row.id)

    return Target("index", run, _arrays(), "json", allowed=_YET, weight=2)


def _archives(room: Path) -> Target:
    archive, project = room / "archive.zip", ProjectFolder(room / "project")

    def run(data: bytes) -> None:
        archive.write_bytes(_packed(data))
        try:
            take_in(archive, project)
        finally:
            shutil.rmtree(room / "project", ignore_errors=True)

    raw = _packed(_archive_example())
    return Target("archive", run, (_archive_example(), raw), "json", weight=10)


def _archive_example() -> bytes:
    files = {"journal.jsonl": _seal(_lines()).decode(), "trials/0000/stdout.log": "hello"}
    listed = {name: [hashlib.sha256(text.encode()).hexdigest(), len(text.encode())] for name, text in files.items()}
    manifest = {"id": ID, "format": 1, "cargobike": "1.0", "name": "a", "files": listed}
    return json.dumps({"manifest": manifest, "files": files}).encode()


def _packed(data: bytes) -> bytes:
    """Make an archive of a description of one; bytes that are none are taken for an archive."""
    try:
        given: Any = json.loads(data.decode("utf-8", "surrogatepass"))
        manifest, files = given["manifest"], dict(given["files"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return data
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in [(MANIFEST, json.dumps(manifest)), *files.items()]:
            try:
                archive.writestr(str(name), str(content).encode("utf-8", "surrogatepass"))
            except (IndexError, ValueError, struct.error):  # zipfile reads more names than it writes
                continue
    return packed.getvalue()


def _checkpoints(room: Path) -> Target:
    reports = Reports(count=4, last_step=3, unconfirmed=(KeptReport(4, 1, 3, {"score": 0.5}),))
    saved, _ = write_folder(
        room / "checkpoints", {"epoch": 3}, 3, 0.5, is_forced=False, surroundings=Surroundings(reports, {"epoch": 1})
    )
    meta = saved / "meta.json"

    def run(data: bytes) -> None:
        meta.write_bytes(data)
        verify(saved)

    return Target("checkpoint", run, (meta.read_bytes(),), "json", allowed=(DamagedError,), weight=40)


def _served_files(room: Path) -> Target:
    project = ProjectFolder(room / "project")
    experiment = project.experiment(ID)
    checkpoints = experiment.root / "trials" / "0000" / "checkpoints" / ".saving.0.1"
    checkpoints.mkdir(parents=True)
    outside = room / "outside"
    outside.write_text("untouched")
    served = ServedFiles(project, experiment)

    def run(data: bytes) -> None:
        requests.encode(served.answer_bytes(data, served.rights(0)))
        assert outside.read_text() == "untouched"

    own = f"experiments/{ID}/trials/0000/checkpoints"
    examples = (
        requests.Put(1, f"{own}/.saving.0.1/state", 2, b"data"),
        requests.Put(2, f"{own}/.saving.0.1/link", link="state"),
        requests.Settle(3, f"{own}/.saving.0.1", "000001-step3", alone=False, replaces=("000000-step1",)),
        requests.Listing(4, own),
        requests.Get(5, f"{own}/000001-step3/state", 1),
        requests.Get(6, f"{own}/../../../../../outside", 1),
    )
    return Target("served-files", run, tuple(map(requests.encode, examples)), "msgpack", allowed=(), weight=15)


def _remote_marks(room: Path) -> Target:
    project = ProjectFolder(room)

    def run(data: bytes) -> None:
        project.remote_url.write_bytes(data)
        remote_of(project)  # does not lie where copies do, and is not opened
        RemoteProject(data.decode("utf-8", "replace").strip())

    return Target("remote-mark", run, (b"memory://bucket/team\n", b"file:///nowhere"), "text", weight=1)


def _heads(room: Path) -> Target:
    from cargobike.experiments.kind import EXPERIMENTS

    remote = RemoteProject(f"file://{room}")
    remote.write_head(EXPERIMENTS, ID, 100, pid=7)
    path = room / EXPERIMENTS.head(ID)

    def run(data: bytes) -> None:
        path.write_bytes(data)
        remote.read_head(EXPERIMENTS, ID)

    return Target("head", run, (path.read_bytes(),), "json", weight=20)


def _annotations(room: Path) -> Target:
    folder = ProjectFolder(room).experiment(ID)
    folder.root.mkdir(parents=True)

    def run(data: bytes) -> None:
        folder.annotations.write_bytes(data)
        read_annotations(folder)

    line = b'{"at":1.0,"user":"me","add":["good"],"note":"a note"}\n'
    return Target("annotations", run, (line, line * 2), "text", weight=20)
