"""Feature groups when several processes write at once, and when a process is killed in the middle of something."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import deltalake
import pytest

from cargobike import features, project
from cargobike.features.groups import upkeep
from support.scripts import environment

PROCESSES = 4
INSERTS = 8
ROWS = 20

START = """
    import json, os, signal, sys
    from datetime import datetime, timedelta, UTC
    import pyarrow as pa
    from cargobike import features, project

    project.use(sys.argv[1])
    DAY = datetime(2026, 5, 1, tzinfo=UTC)

    def batch(first, value, rows=20):
        ids = list(range(first, first + rows))
        return {"id": ids, "at": [DAY] * rows, "x": [float(value)] * rows, "batch": [str(value)] * rows}
"""

WRITER = """
    number = int(sys.argv[2])
    group = features.create_group("shared", key="id", event_time="at")
    counts = []
    for turn in range(8):
        own = group.insert(batch(1000 * (number + 1) + 20 * turn, turn))
        common = group.insert(batch(0, 100 * number + turn))
        counts.append([own.inserted, common.inserted + common.updated + common.unchanged])
        if turn == 5:
            group.compact()
    print(json.dumps(counts))
"""


def start(folder: Path, text: str, *arguments: str) -> subprocess.Popen[str]:
    script = folder / f"script-{abs(hash(text))}.py"
    if not script.exists():  # another process may be reading it just now
        script.write_text(textwrap.dedent(START) + textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, str(script), str(folder / "project"), *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def shared(tmp_path: Path) -> features.Group:
    project.use(tmp_path / "project")
    return features.create_group("shared", key="id", event_time="at")


def check_whole(group: features.Group) -> None:
    """Every key has one row, each batch is there as a whole, and another program reads the same."""
    rows = group.read()
    ids = rows.column("id").to_pylist()
    assert len(set(ids)) == len(ids)
    sizes: dict[tuple[int, str], int] = {}
    for row in rows.to_pylist():
        place = (row["id"] // ROWS, row["batch"])
        sizes[place] = sizes.get(place, 0) + 1
    assert set(sizes.values()) <= {ROWS}
    theirs = deltalake.DeltaTable(group.url)
    assert theirs.version() == group.commit
    assert sorted(theirs.to_pyarrow_table(columns=["id"]).column("id").to_pylist()) == sorted(ids)


def test_four_processes_insert_at_once_and_lose_nothing(tmp_path: Path, shared: features.Group) -> None:
    writers = [start(tmp_path, WRITER, str(number)) for number in range(PROCESSES)]
    for writer in writers:
        out, error = writer.communicate(timeout=240)
        assert (writer.returncode, error) == (0, "")
        assert json.loads(out) == [[ROWS, ROWS]] * INSERTS
    check_whole(shared)
    assert shared.num_rows == PROCESSES * INSERTS * ROWS + ROWS
    inserts = [commit for commit in shared.history() if commit.operation == "insert"]
    assert len(inserts) == 2 * PROCESSES * INSERTS
    assert [commit.number for commit in shared.history()] == list(range(shared.commit, -1, -1))
    times = [commit.at for commit in shared.history()]
    assert times == sorted(times, reverse=True)
    assert shared.statistics().rows == shared.num_rows


KILLED = """
    from cargobike.features.delta.log import Log

    group = features.create_group("shared", key="id", event_time="at")
    group.insert(batch(0, 1))
    group.insert(batch(20, 2))
    commit = Log.commit

    def die(log, base, actions):
        if sys.argv[3] == "after":
            assert commit(log, base, actions) is not None
        os.kill(os.getpid(), signal.SIGKILL)

    Log.commit = die
    if sys.argv[2] == "insert":
        group.insert(batch(0, 3))
    elif sys.argv[2] == "delete":
        group.delete([1])
    else:
        group.compact()
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["insert", "compact", "delete"])
def test_a_process_that_is_killed_leaves_all_or_nothing(
    what: str, when: str, tmp_path: Path, shared: features.Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = start(tmp_path, KILLED, what, when)
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    done = when == "after"
    values = {row["id"]: row["batch"] for row in shared.read().to_pylist()}
    assert values[5] == ("3" if done and what == "insert" else "1")
    assert len(values) == 2 * ROWS - (done and what == "delete")
    assert shared.commit == 1 + done
    assert shared.insert(shared.read().slice(0, 1)).unchanged == 1
    monkeypatch.setattr(upkeep, "UNCOMMITTED_S", 0.0)
    shared.vacuum(older_than=0)
    left = {path.name for path in Path(shared.url).glob("*.parquet")}
    assert left == {Path(file).name for file in shared.dataset().files}, "leftovers are deleted, and nothing else"
    assert {row["id"]: row["batch"] for row in shared.read().to_pylist()} == values


BUSY = """
    group = features.create_group("shared", key="id", event_time="at")
    for turn in range(10_000):
        group.insert(batch(20 * (turn % 40), turn))
        print(turn, flush=True)
        if turn % 5 == 4:
            group.compact()
"""


def test_a_process_that_is_killed_at_any_moment_leaves_whole_batches(tmp_path: Path, shared: features.Group) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    for _ in range(3):
        busy = start(tmp_path, BUSY)
        assert busy.stdout is not None
        for _ in range(moments.randrange(1, 12)):
            assert busy.stdout.readline()
        time.sleep(moments.random() * 0.05)  # not to wait for something: any moment will do
        os.kill(busy.pid, signal.SIGKILL)
        busy.communicate(timeout=60)
        check_whole(shared)
    assert shared.num_rows >= ROWS
    assert shared.insert(shared.read()).unchanged == shared.num_rows
