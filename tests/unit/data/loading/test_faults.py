"""What a loader does when something goes wrong: what is left out is counted, and nothing is left running."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike.core.errors import InvalidInputError, StoreError, WaitError
from cargobike.data.loading.loader import Loader
from cargobike.data.sources.memory import MemorySource
from support.loader_threads import expect_threads_to_end
from support.scripts import environment


class Broken(MemorySource):
    """A table of which some groups cannot be read, and some never come."""

    def __init__(self, rows: int, *, bad: Sequence[int] = (), late: threading.Event | None = None) -> None:
        super().__init__(pa.table({"id": np.arange(rows), "word": [str(row) for row in range(rows)]}), group_rows=10)
        self._bad = bad
        self._late = late

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        if self._late is not None:
            self._late.wait(60)
        if group in self._bad:
            raise StoreError(f"{self.groups[group].place} cannot be read: it is broken.")
        return super().read(group, columns)


def ids(batches: Any) -> list[int]:
    return [int(row) for batch in batches for row in batch["id"]]


def test_a_group_that_cannot_be_read_is_an_error_at_its_rows() -> None:
    loader = Loader(Broken(50, bad=[2]), 5)
    iterator = iter(loader)
    assert ids([next(iterator) for _ in range(4)]) == list(range(20)), "what comes before it is given"
    with pytest.raises(StoreError, match="rows 20 to 30 cannot be read"):
        next(iterator)
    expect_threads_to_end()


@pytest.mark.parametrize("to", ["numpy", "arrow"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_what_is_skipped_is_counted_and_recorded(to: Any, shuffle: bool) -> None:
    loader = Loader(Broken(50, bad=[1, 4]), 4, shuffle=shuffle, mix=2, to=to, on_error="skip")
    batches = list(loader)
    rows = [row for batch in batches for row in (batch["id"].to_pylist() if to == "arrow" else batch["id"].tolist())]
    assert sorted(rows) == [*range(10), *range(20, 40)]
    words = [batch["word"].to_pylist() if to == "arrow" else batch["word"].tolist() for batch in batches]
    assert [word for each in words for word in each] == [str(row) for row in rows], "columns stay side by side"
    assert loader.stats.skipped_rows == 20
    assert len(loader.stats.skipped) == 2
    assert any("rows 10 to 20: 10 rows: " in line and "it is broken" in line for line in loader.stats.skipped)
    assert loader.state_dict()["skipped"] == 20
    again = Loader(Broken(50), 4, shuffle=shuffle)
    again.load_state_dict(loader.state_dict())
    assert again.stats.skipped_rows == 20


def test_rows_that_cannot_be_given_are_skipped_one_by_one() -> None:
    table = {"id": [0, 1, 2, 3], "x": pa.array([1.0, None, 3.0, None]), "l": [[1], [1], [1, 2], [1]]}
    loader = Loader(table, on_error="skip")
    (batch,) = list(loader)
    assert batch["id"].tolist() == [0]
    assert loader.stats.skipped_rows == 3
    assert "column 'x' holds a null" in loader.stats.skipped[0]
    assert "column 'l' has 2 values" in loader.stats.skipped[0]


def test_ranks_take_the_same_number_of_steps_whatever_is_skipped() -> None:
    """A batch of which nothing is left would leave the other ranks waiting: it repeats a row, and that is counted."""
    counts = []
    for rank in range(2):
        loader = Loader(Broken(40, bad=[1]), 5, on_error="skip", rank=rank, world_size=2)
        batches = list(loader)
        counts.append(len(batches))
        assert all(len(batch["id"]) for batch in batches)
        assert loader.stats.padded_rows == (2 if rank == 0 else 0)
    assert counts == [4, 4]
    with pytest.raises(StoreError, match="No row of this rank's first batch can be read"):
        list(Loader(Broken(40, bad=[0, 1]), 5, on_error="skip", rank=0, world_size=2))


def test_storage_that_does_not_answer_is_named_after_a_while() -> None:
    late = threading.Event()
    loader = Loader(Broken(40, late=late), 5, timeout_s=0.05)
    timer = threading.Timer(0.3, late.set)  # threads finish what they are doing before the error is raised
    timer.start()
    with pytest.raises(WaitError, match=r"rows 0 to 10 was not read within 0.05 s") as caught:
        list(loader)
    timer.join()
    assert "rows 0 to 10" in caught.value.missing[0]
    expect_threads_to_end()


def test_an_older_iterator_does_not_go_on_beside_a_newer_one() -> None:
    loader = Loader(Broken(40), 5)
    older, newer = iter(loader), iter(loader)
    first, second = next(older), next(newer)
    assert first["id"].tolist() == [0, 1, 2, 3, 4]
    assert second["id"].tolist() == [5, 6, 7, 8, 9]
    with pytest.raises(InvalidInputError, match="only the newest iterator goes on"):
        next(older)
    assert ids(newer) == list(range(10, 40))
    expect_threads_to_end()


def test_a_forked_process_goes_on_by_itself(tmp_path: Path) -> None:
    """The threads of a process are not copied with it; the copy begins its own, at the same place."""
    loader = Loader(Broken(200), 5, shuffle=True)
    whole = ids(Loader(Broken(200), 5, shuffle=True))
    iterator = iter(loader)
    begun = ids([next(iterator), next(iterator)])
    child = os.fork()
    if child == 0:
        try:
            (tmp_path / "rest").write_text(" ".join(map(str, ids(iterator))))
        finally:
            os._exit(0)
    assert begun + ids(iterator) == whole
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert begun + [int(row) for row in (tmp_path / "rest").read_text().split()] == whole


@pytest.mark.parametrize("how", ["interrupted", "exits", "raises"])
def test_a_program_ends_with_its_loader_open(tmp_path: Path, how: str) -> None:
    """Ctrl-C, the end of the program in the middle of an epoch, and an error: no thread holds it back."""
    rows = np.arange(200_000)
    pq.write_table(pa.table({"id": rows, "x": rows / 3}), tmp_path / "t.parquet", row_group_size=1000)
    script = textwrap.dedent(f"""
        import sys
        from cargobike.data.loading.loader import Loader
        iterator = iter(Loader("t.parquet", 10, shuffle=True))
        for number in range(50):
            next(iterator)
        print("begun", flush=True)
        if "{how}" == "raises":
            raise SystemExit("enough")
        if "{how}" == "interrupted":
            while True:
                for batch in Loader("t.parquet", 10, shuffle=True):
                    pass
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    if how == "interrupted":
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    expected = {"interrupted": -signal.SIGINT, "exits": 0, "raises": 1}[how]
    assert process.returncode == expected, errors
    assert ("KeyboardInterrupt" in errors) == (how == "interrupted")


def test_a_loader_travels_to_another_process(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": list(range(30))}), tmp_path / "t.parquet", row_group_size=7)
    loader = Loader(tmp_path / "t.parquet", 4, shuffle=True, seed=9)
    begun = ids([next(iter(loader))])
    copy = pickle.loads(pickle.dumps(loader))
    rest = ids(loader)
    assert ids(copy) == rest
    assert sorted(begun + rest) == list(range(30))
    with pytest.raises(InvalidInputError, match="only in the memory of this process"):
        pickle.dumps(Loader({"x": [1]}))


def test_memory_stays_within_a_few_groups(tmp_path: Path) -> None:
    """Whatever the number of groups: only those of a window, and as many ahead of it."""
    rows = np.random.default_rng(0).standard_normal((400_000, 4))
    table = pa.table({name: rows[:, number] for number, name in enumerate("abcd")})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=10_000)
    group = 10_000 * 4 * 8
    loader = Loader(tmp_path / "t.parquet", 256, shuffle=True, mix=2, columns={"x": list("abcd")})
    assert sum(len(batch["x"]) for batch in loader) == 400_000
    assert loader.stats.peak_bytes <= 6.5 * group
