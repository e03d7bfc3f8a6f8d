"""Several writers of one table at once, and writers that are killed at any moment."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import msgspec
import pytest

from cargobike import data
from cargobike.core.errors import StoreError
from cargobike.core.running.process_names import name_of_this_process
from cargobike.data.tables.addresses import address_of
from cargobike.data.tables.claims import sweep
from cargobike.data.tables.removing import remove_version
from cargobike.data.tables.rows.incoming import incoming_of
from cargobike.data.tables.writer import TableWriter
from cargobike.store.assets.claims import Claim, Writing
from cargobike.store.files.storages import open_storage
from support.scripts import run_script

_MANY = """
import subprocess, sys

writer = '''
import sys
from cargobike import data
for number in range(5):
    data.write({"writer": [int(sys.argv[2])] * 3, "number": [number] * 3}, sys.argv[1])
'''
processes = [subprocess.Popen([sys.executable, "-c", writer, "./table", str(n)]) for n in range(4)]
print([process.wait(timeout=60) for process in processes])
"""

_KILLED = """
import json, os, signal

import pyarrow.compute, pyarrow.parquet

from cargobike import data
from cargobike.data.sources import table
from cargobike.data.tables import opening, writer, writing
from cargobike.store.files import patient
from cargobike.store.files.access import disk

place = os.getcwd()
answers = []
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
            step()
            returned = method(self, *arguments, **options)
            step()
            return returned
        return call

    for name in METHODS:
        setattr(patient.PatientStorage, name, wrapped(getattr(patient.PatientStorage, name)))
    noted = writer.TableWriter._note
    writer.TableWriter._note = lambda self, rows, size: (step(), noted(self, rows, size))


def in_child(work):
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1]


def write(url, moment=0):
    if moment:
        dying_at(moment)
    rows = [{"n": number, "late": None if number < 3 else 1.5} for number in range(6)]
    data.write((data_of(rows[start : start + 3]) for start in (0, 3)), url)
    os._exit(0)


def data_of(rows):
    import pyarrow as pa
    return pa.Table.from_pylist(rows)


def look(url):
    versions = []
    while True:
        try:
            table = data.open(url, version=len(versions) + 1)
        except LookupError:
            break
        assert table.read().num_rows == 6
        versions.append([file.path for file in table.files])
    with open(place + ".said", "a") as file:
        print(json.dumps([url, versions]), file=file)
    os._exit(0)


moment = 0
while True:
    moment += 1
    url = f"{place}/{moment}"
    assert in_child(lambda: write(url)) == 0
    status = in_child(lambda: write(url, moment))
    if status == 0:
        break
    assert os.WIFSIGNALED(status), status
    assert in_child(lambda: look(url)) == 0
    assert in_child(lambda: write(url)) == 0
    assert in_child(lambda: look(url)) == 0
print(moment)
"""


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_four_processes_get_numbers_without_gaps(tmp_path: Path) -> None:
    assert run_script(tmp_path, _MANY) == [0] * 4

    tables = [data.open(tmp_path / "table", version=version) for version in range(1, 21)]
    seen = {(table.read().to_pylist()[0]["writer"], table.read().to_pylist()[0]["number"]) for table in tables}
    assert seen == {(writer, number) for writer in range(4) for number in range(5)}
    listed = {file.path for table in tables for file in table.files}
    assert set(files_below(tmp_path / "table")) == listed | {f"{number}/manifest.json" for number in range(1, 21)}
    for writer in range(4):
        numbers = [table.read().to_pylist()[0] for table in tables]
        assert [row["number"] for row in numbers if row["writer"] == writer] == list(range(5))


def test_a_writer_that_is_killed_at_any_moment_leaves_nothing_half(tmp_path: Path) -> None:
    moments = run_script(tmp_path / "tables", _KILLED)

    answers = [json.loads(line) for line in (tmp_path / "tables.said").read_text().splitlines()]
    assert len(answers) == 2 * (moments - 1)
    assert moments > 20, "so many moments there are at least"
    for (url, before), (same, after) in zip(answers[::2], answers[1::2], strict=True):
        assert url == same
        assert len(before) in (1, 2)
        assert after[: len(before)] == before
        assert len(after) == len(before) + 1
        listed = {path for version in after for path in version}
        manifests = {f"{number}/manifest.json" for number in range(1, len(after) + 1)}
        assert set(files_below(Path(url))) == listed | manifests, url


def test_files_of_living_writers_are_not_swept(tmp_path: Path) -> None:
    address = address_of(tmp_path / "table")
    with TableWriter(address, "test") as slow:
        slow.write(incoming_of({"n": [1, 2, 3]}))
        during = files_below(tmp_path / "table")
        assert sweep(address.storage) == []
        assert data.write({"n": [4]}, tmp_path / "table").version == 1
        assert set(during) < set(files_below(tmp_path / "table"))
        assert slow.commit().version == 2

    assert [data.open(tmp_path / "table", version=number).num_rows for number in (1, 2)] == [1, 3]
    assert data.open(tmp_path / "table").files[0].path.startswith("1/"), "files stay where they were written"


def test_a_writer_that_was_silent_for_a_day_and_comes_back_is_refused(tmp_path: Path) -> None:
    address = address_of(tmp_path / "table")
    with contextlib.suppress(StoreError), TableWriter(address, "test") as slow:
        slow.write(incoming_of({"n": [1, 2, 3]}))
        claim = Claim(name_of_this_process(), slow.folder, time.time() - 25 * 3600)
        address.storage.write(slow.claim_path, msgspec.json.encode(claim))
        assert len(sweep(address.storage)) == 1
        with pytest.raises(StoreError, match="swept away, since this process had been silent"):
            slow.commit()
        raise StoreError
    assert not (tmp_path / "table").exists()


def test_claims_that_cannot_be_read_are_left_alone(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    for name, content in {"a.json": b"{", "b.json": b'{"process":"","folder":"../x","at":0}', "..json": b""}.items():
        storage.write(f"writing/{name}", content)
    writing = Writing(storage, "abc", "1")

    assert sweep(storage) == []
    writing.end()
    assert len(files_below(tmp_path)) == 3


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    script = """
from cargobike import data

def rows():
    yield from ({"n": number} for number in range(10_000))
    raise KeyboardInterrupt

try:
    data.write(rows(), "./table")
except KeyboardInterrupt:
    print(1)
"""
    assert run_script(tmp_path, script) == 1
    assert not (tmp_path / "table").exists()


def test_files_that_no_version_lists_go_with_the_next_removal(tmp_path: Path) -> None:
    place = tmp_path / "table"
    for number in range(2):
        data.write({"n": [number]}, place)
    late = place / "2" / "part-000003-0123456789ab-77-0000.parquet"
    late.write_bytes(b"of a task that outlived its job")
    (place / "2" / "notes.txt").write_text("mine")
    with TableWriter(address_of(place), "test") as living:
        living.write(incoming_of({"n": [1, 2, 3]}))
        remove_version(address_of(place), 1)
        assert not late.exists()
        assert (place / "2" / "notes.txt").exists()
        assert living.commit().version == 3
    assert data.open(place).read().num_rows == 3
    assert data.open(place, version=2).read().num_rows == 1
