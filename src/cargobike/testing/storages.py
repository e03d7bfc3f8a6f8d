"""A contract suite for storages.

Write your own `Storage`, or an entry point that opens one, then:

```python
class TestMyStorage(StorageContract):
    @pytest.fixture
    def url(self) -> str:
        return "vault://host/a-folder-of-its-own"
```
"""

from __future__ import annotations

import hashlib
import pickle
import random
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage

__all__ = ["StorageContract"]

_RANGES = [
    (0, None, b"0123456789"),
    (0, 0, b""),
    (7, None, b"789"),
    (2, 3, b"234"),
    (8, 50, b"89"),
    (10, None, b""),
    (99, 5, b""),
]
_NAMES = ["with space", "ümläut", "a+b=c&d", "100%", "x*[y]?", "{z}", "#hash", ".hidden"]
_REFUSED = ["", "/etc/passwd", "../out", "a/../../out", "a//b", "a/", "./a", "a\nb", "a\0b"]

_CREATE = """
import sys
from cargobike.store.files.storages import open_storage
storage = open_storage(sys.argv[1])
storage.stat("ready")
print("ready", flush=True)
sys.stdin.readline()
print(sum(storage.create(f"race/{number}", sys.argv[2].encode()) for number in range(int(sys.argv[3]))), flush=True)
"""

_REPLACE = """
import sys
from cargobike.store.files.storages import open_storage
storage = open_storage(sys.argv[1])
versions = [bytes([letter]) * size for letter, size in ((97, 300_000), (98, 200_000))]
storage.write("replaced", versions[0])
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    storage.write("replaced", versions[number % 2])
"""


class StorageContract(ABC):
    """What every storage guarantees; see `Storage`.

    Attributes:
        is_shared: Whether several processes can use the storage at once.
        race_files: How many files several processes try to create at the same time.
    """

    is_shared = True
    race_files = 20

    @pytest.fixture
    @abstractmethod
    def url(self, tmp_path: Path) -> str:
        """Return an address with nothing below it, of its own for each test."""

    @pytest.fixture
    def storage(self, url: str) -> Storage:
        """Return the storage at the address."""
        return open_storage(url)

    def test_what_was_written_is_read(self, storage: Storage) -> None:
        """Write and replace a file, and read it."""
        storage.write("some/deep/file.bin", b"0123456789")
        assert storage.read("some/deep/file.bin") == b"0123456789"
        storage.write("some/deep/file.bin", b"other")
        assert storage.read("some/deep/file.bin") == b"other"
        storage.write("empty", b"")
        assert storage.read("empty") == b""

    def test_a_range_is_read(self, storage: Storage) -> None:
        """Read a part of a file; beyond its end there is nothing."""
        storage.write("file", b"0123456789")
        for start, length, part in _RANGES:
            assert storage.read("file", start, length) == part, (start, length)

    def test_what_is_not_there_is_none(self, storage: Storage) -> None:
        """Ask for files that are not there, and for folders."""
        assert storage.read("none") is None
        assert storage.read("none/at/all", 3, 0) is None
        assert storage.stat("none") is None
        assert list(storage.list()) == []
        assert list(storage.list("none", deep=True)) == []
        storage.delete("none", "none/at/all")
        storage.write("folder/file", b"x")
        assert storage.read("folder") is None, "a folder is no file"
        assert storage.stat("folder") is None

    def test_a_local_file_is_written_whole(self, storage: Storage, tmp_path: Path) -> None:
        """Write a file of several megabytes from the disk."""
        data = random.Random(7).randbytes(9 << 20)
        (tmp_path / "large").write_bytes(data)
        storage.write("files/large", tmp_path / "large")
        entry = storage.stat("files/large")
        assert entry is not None
        assert entry.size == len(data)
        copy = storage.read("files/large")
        assert copy is not None
        assert hashlib.sha256(copy).digest() == hashlib.sha256(data).digest()
        assert storage.read("files/large", 5 << 20, 1000) == data[5 << 20 : (5 << 20) + 1000]
        with pytest.raises(FileNotFoundError):
            storage.write("files/none", tmp_path / "none")

    def test_a_file_is_created_once(self, storage: Storage) -> None:
        """Create a file that is there, and one that was deleted."""
        assert storage.create("manifests/1", b"first")
        assert not storage.create("manifests/1", b"second")
        assert not storage.create("manifests/1", b"first"), "the same content is not the same call"
        assert storage.read("manifests/1") == b"first"
        storage.delete("manifests/1")
        assert storage.create("manifests/1", b"third")
        storage.write("manifests/2", b"written")
        assert not storage.create("manifests/2", b"created")

    def test_a_listing_shows_what_was_written_and_nothing_else(self, storage: Storage) -> None:
        """List folders whose names begin alike, with and without those below."""
        sizes = {"top": 1, "runs/1": 2, "runs/2": 3, "runs/2.old": 4, "runs/deep/er/3": 5, "runs-of-others/4": 6}
        for path, size in sizes.items():
            storage.write(path, b"x" * size)
        listed = {entry.path: entry.size for entry in storage.list("", deep=True)}
        assert listed == sizes
        assert {entry.path for entry in storage.list()} == {"top"}
        assert {entry.path for entry in storage.list("runs")} == {"runs/1", "runs/2", "runs/2.old"}
        deep = {entry.path for entry in storage.list("runs", deep=True)}
        assert deep == {"runs/1", "runs/2", "runs/2.old", "runs/deep/er/3"}
        assert list(storage.list("runs/1", deep=True)) == []

    def test_a_token_changes_with_the_file(self, storage: Storage) -> None:
        """Replace a file at once, again and again."""
        tokens = []
        for number in range(4):
            storage.write("head", b"%d" % number)
            entry = storage.stat("head")
            assert entry is not None
            assert list(storage.list()) == [entry]
            assert storage.stat("head") == entry
            tokens.append(entry.token)
        assert len(set(tokens)) == len(tokens)

    def test_what_is_deleted_is_gone_with_all_below_it(self, storage: Storage) -> None:
        """Delete files and folders whose names begin alike."""
        for path in ("runs/1/a", "runs/1/b/c", "runs/10/a", "runs/1.txt"):
            storage.write(path, b"x")
        storage.delete("runs/1", "never/there")
        assert {entry.path for entry in storage.list("", deep=True)} == {"runs/10/a", "runs/1.txt"}
        storage.delete("runs/10/a")
        assert storage.read("runs/10/a") is None
        storage.write("runs/10/a", b"again")
        assert storage.read("runs/10/a") == b"again"
        storage.delete("runs")
        assert list(storage.list("", deep=True)) == []

    def test_names_are_kept_as_they_are(self, storage: Storage) -> None:
        """Use names that mean something to shells, patterns and addresses."""
        for name in _NAMES:
            path = f"names/{name}/{name}"
            storage.write(path, name.encode())
            assert storage.create(f"{path}.once", b"x")
            assert storage.read(path) == name.encode()
            assert {entry.path for entry in storage.list(f"names/{name}")} == {path, f"{path}.once"}
        for name in _NAMES:
            storage.delete(f"names/{name}/{name}")
        left = {entry.path for entry in storage.list("names", deep=True)}
        assert left == {f"names/{name}/{name}.once" for name in _NAMES}

    def test_paths_do_not_lead_out(self, storage: Storage) -> None:
        """Use paths that lead out of the storage, or that not every storage can keep."""
        calls: list[Callable[[str], Any]] = [
            storage.read,
            storage.stat,
            storage.delete,
            lambda path: storage.write(path, b"x"),
            lambda path: storage.create(path, b"x"),
        ]
        for path in _REFUSED:
            for call in calls:
                with pytest.raises(InvalidInputError, match="is refused"):
                    call(path)

    def test_it_is_opened_again_by_others(self, storage: Storage) -> None:
        """Open the storage by its address, and from a pickle."""
        storage.write("note", b"hello")
        assert open_storage(storage.url).read("note") == b"hello"
        assert pickle.loads(pickle.dumps(storage)).read("note") == b"hello"

    def test_threads_use_it_at_once(self, storage: Storage) -> None:
        """Write and create files in several threads."""
        wins: list[int] = []

        def work(number: int) -> None:
            for name in range(5):
                storage.write(f"files/{number}-{name}", bytes([number]) * 100)
                if storage.create(f"race/{name}", bytes([number])):
                    wins.append(name)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert sorted(wins) == list(range(5))
        assert len(list(storage.list("files"))) == 20

    def test_of_several_processes_one_creates_a_file(self, storage: Storage) -> None:
        """Create the same files in several processes at the same time."""
        if not self.is_shared:
            return
        processes = [self._start(_CREATE, storage.url, f"process {number}", self.race_files) for number in range(3)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        told = 0
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            output, _ = process.communicate(timeout=120)
            assert process.returncode == 0
            told += int(output)
        assert told == self.race_files
        written = {entry.path: storage.read(entry.path) for entry in storage.list("race")}
        assert len(written) == self.race_files
        assert set(written.values()) <= {b"process 0", b"process 1", b"process 2"}

    def test_readers_see_a_file_whole(self, storage: Storage) -> None:
        """Read and list while another process replaces a file."""
        if not self.is_shared:
            return
        process = self._start(_REPLACE, storage.url, self.race_files)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        reads = 0
        while process.poll() is None or reads == 0:
            data = storage.read("replaced")
            assert data is not None, "it is never gone"
            assert (data[:1], len(data)) in {(b"a", 300_000), (b"b", 200_000)}
            assert len(set(data)) == 1
            assert {entry.path for entry in storage.list()} == {"replaced"}
            reads += 1
        process.communicate()
        assert process.returncode == 0

    def test_pyarrow_reads_in_place(self, storage: Storage) -> None:
        """Read Parquet files through pyarrow's file system."""
        arrow = pytest.importorskip("pyarrow")
        parquet, dataset = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.dataset")
        table = arrow.table({"x": list(range(10_000)), "y": [str(number) for number in range(10_000)]})
        for number in range(2):
            sink = arrow.BufferOutputStream()
            parquet.write_table(table, sink, row_group_size=1000)
            storage.write(f"table/part-{number}.parquet", sink.getvalue().to_pybytes())
        fs, root = storage.arrow()
        first = "/".join(filter(None, [root, "table/part-0.parquet"]))
        folder = "/".join(filter(None, [root, "table"]))
        assert parquet.read_table(first, filesystem=fs).equals(table)
        assert parquet.ParquetFile(first, filesystem=fs).read_row_group(3, columns=["x"]).num_rows == 1000
        assert dataset.dataset(folder, filesystem=fs, format="parquet").count_rows() == 20_000
        with pytest.raises(FileNotFoundError):
            fs.open_input_file(first + ".none")

    @staticmethod
    def _start(program: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
