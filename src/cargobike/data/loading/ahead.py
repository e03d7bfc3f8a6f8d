"""Threads that decode groups ahead of need, a bounded number of them, in the order in which they are visited.

Every task is one group, and waits for nothing; whoever takes batches hands out the next ones. So the threads end with
the iterator, however it ends, and can neither hang the end of the program nor keep the loader alive.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as LateError

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cargobike.core.errors import CargobikeError, InvalidInputError, WaitError
from cargobike.data.loading.blocks import Blocks
from cargobike.data.loading.decoding import Problem
from cargobike.data.loading.stats import Stats
from cargobike.data.loading.visits import Visit
from cargobike.data.sources.source import Source


class _Load:
    """A group on its way into memory, or there."""

    def __init__(self, group: int) -> None:
        self.group = group
        self.place = -1
        self.coming: Future[tuple[list[Problem], int]] | None = None
        self.bad: NDArray[np.bool_] | None = None


class _Stop:
    """A visit, and its groups."""

    def __init__(self, visit: Visit, loads: dict[int, _Load]) -> None:
        self.visit = visit
        self.loads = loads


class ReadAhead:
    """Visits whose groups are in memory, one after the other.

    Args:
        source: What is read.
        names: Its columns.
        visits: What to visit.
        blocks: Where groups are put.
        places: How many fit there.
        threads: How many decode.
        timeout_s: After how long without an answer to give up.
        skip: Whether rows that cannot be read are left out, and counted; otherwise they are an error.
        stats: Where is counted what was read, waited for and left out.
    """

    def __init__(
        self,
        source: Source,
        names: Sequence[str],
        visits: Iterator[Visit],
        blocks: Blocks,
        *,
        places: int,
        threads: int,
        timeout_s: float,
        skip: bool,
        stats: Stats,
    ) -> None:
        self._source = source
        self._names = list(names)
        self._visits = visits
        self._blocks = blocks
        self._timeout_s = timeout_s
        self._skip = skip
        self._stats = stats
        self._threads = threads
        self._free = list(range(places))
        self._stops: deque[_Stop] = deque()
        self._planned: _Stop | None = None
        self._pending: deque[_Load] = deque()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="cargobike-loader")
        try:
            self._hand_out()
        except BaseException:  # a thread whose start Ctrl-C has interrupted would wait for work for ever
            self.close()
            raise

    def visit(self) -> tuple[Visit, dict[int, int], dict[int, NDArray[np.bool_]]]:
        """Return the next visit once its groups are there.

        With it come the first row of each of its groups, and which rows of a group are to be left out.
        """
        stop = self._stops[0]
        for load in stop.loads.values():
            self._wait_for(load)
        groups = list(stop.loads)
        bases = self._blocks.bases([stop.loads[group].place for group in groups])
        bad = {group: load.bad for group, load in stop.loads.items() if load.bad is not None}
        return stop.visit, dict(zip(groups, bases, strict=True)), bad

    def leave(self) -> None:
        """Give the places of groups that the next visit does not need to those that come later."""
        if len(self._stops) == 1:
            self._plan()  # it may need some of the same groups
        stop = self._stops.popleft()
        kept = self._stops[0].loads if self._stops else {}
        for group, load in stop.loads.items():
            if kept.get(group) is not load:
                self._free.append(load.place)
        self._hand_out()

    def close(self) -> bool:
        """Let the threads end once they have finished what they are doing; returns whether they had nothing to do.

        It does not wait for them: mostly a generator that is thrown away closes this, and Python ignores a Ctrl-C that
        comes meanwhile.
        """
        self._executor.shutdown(wait=False, cancel_futures=True)
        loads = (load.coming for stop in self._stops for load in stop.loads.values())
        return all(coming is None or coming.done() for coming in loads)

    def join(self, timeout_s: float) -> bool:
        """Wait until the threads have finished what they were doing when this was closed; returns whether they have."""
        loads = (load.coming for stop in self._stops for load in stop.loads.values())
        running = [coming for coming in loads if coming is not None and not coming.done()]  # those cancelled are done
        return not wait(running, timeout_s).not_done

    def _hand_out(self) -> None:
        """Give free places to the groups that come next."""
        while self._free:
            while not self._pending:
                if not self._plan():
                    return
            load = self._pending.popleft()
            load.place = self._free.pop()
            load.coming = self._executor.submit(_bring, self._source, load.group, self._names, self._blocks, load.place)

    def _plan(self) -> bool:
        """Look one visit further ahead; groups that it shares with the one before it are read once."""
        visit = next(self._visits, None)
        if visit is None:
            return False
        before = self._planned.loads if self._planned is not None and self._planned in self._stops else {}
        loads = {}
        for piece in visit.pieces:
            load = before.get(piece.group)
            if load is None:
                load = _Load(piece.group)
                self._pending.append(load)
            loads[piece.group] = load
        self._planned = _Stop(visit, loads)
        self._stops.append(self._planned)
        return True

    def _wait_for(self, load: _Load) -> None:
        coming = load.coming
        if coming is None:
            raise AssertionError("a visit has more groups than there are places")
        began = time.perf_counter()
        try:
            problems, size = coming.result(self._timeout_s)
            self._stats.peak_bytes = max(self._stats.peak_bytes, self._blocks.nbytes + self._threads * size)
        except LateError:
            place = self._source.groups[load.group].place
            raise WaitError(
                f"{place} was not read within {self._timeout_s:g} s. Is its storage there? "
                "Give Loader(timeout_s=…) if it is only slow.",
                missing=[place],
            ) from None
        except CargobikeError as error:
            if not self._skip:
                raise
            group = self._source.groups[load.group]
            load.bad = np.ones(group.rows, bool)
            self._blocks.put_nothing(load.place, group.rows)
            self._stats.count_skipped(group.place, group.rows, str(error))
        else:
            self._judge(load, problems)
        finally:
            self._stats.waited_s += time.perf_counter() - began
        load.coming = _DONE

    def _judge(self, load: _Load, problems: list[Problem]) -> None:
        """Raise what is wrong with rows of a group, or leave them out."""
        if not problems:
            return
        place = self._source.groups[load.group].place
        if not self._skip:
            raise InvalidInputError(
                f"{place} cannot be given as asked.",
                [
                    f"Column {problem.column!r}, row {int(np.argmax(problem.rows))} of the group"
                    f"{_how_many(problem)}: it {problem.words}."
                    for problem in problems
                ],
            )
        load.bad = np.logical_or.reduce([problem.rows for problem in problems])
        words = "; ".join(f"column {problem.column!r} {problem.words}" for problem in problems)
        self._stats.count_skipped(place, int(load.bad.sum()), words)


def _bring(source: Source, group: int, names: list[str], blocks: Blocks, place: int) -> tuple[list[Problem], int]:
    """Read and decode one group; knows neither the loader nor the iterator, so that it keeps none of them alive."""
    problems: list[Problem] = []
    most = 0
    parts = _parts(names, source.columns_at_once) if blocks.takes_parts else [names]
    for part in parts:
        table = source.read(group, part)
        try:
            found, size = _put(table, blocks, place)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            words = f"{source.groups[group].place} cannot be given as asked: {error}"
            raise InvalidInputError(words, [f"Columns: {', '.join(part)}."]) from error
        del table  # the next part is read without it in memory
        problems += found
        most = max(most, size)
    return problems, most


def _put(table: pa.Table, blocks: Blocks, place: int) -> tuple[list[Problem], int]:
    """Decode a table; returns what is wrong with it, and its size."""
    return blocks.put(place, table), table.nbytes


def _parts(names: list[str], most: int | None) -> list[list[str]]:
    """Return the columns in parts of which each has at most so many."""
    if most is None:
        return [names]
    return [names[start : start + most] for start in range(0, len(names), most)]


def _how_many(problem: Problem) -> str:
    count = int(problem.rows.sum())
    return "" if count == 1 else f" and {count - 1:,} more"


_DONE: Future[tuple[list[Problem], int]] = Future()
_DONE.set_result(([], 0))
