"""Feeds partitions of any kind to the nodes of a cluster: of an RDD, a DataFrame, or an iterable of iterables."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cargobike.core.errors import InvalidInputError
from cargobike.data.pushing.sending import Node, Pushed, push, push_for_results
from cargobike.engines.spark.pythons import python_for_tasks


class Feeding:
    """How the partitions of some data are fed.

    Args:
        data: An RDD, a DataFrame of Spark, or an iterable of partitions, each of them an iterable of rows.
        nodes: Where to.
        queue: Which of their queues.
        patience_s: How long no row may be taken.
    """

    def __init__(self, data: Any, nodes: list[Node], queue: str, patience_s: float) -> None:
        self._data, self._nodes = data, nodes
        self._options: dict[str, Any] = {"queue": queue, "patience_s": patience_s}

    @property
    def is_once_only(self) -> bool:
        """Whether the data can be gone through only once."""
        return isinstance(self._data, Iterator)

    def push_all(self) -> Pushed:
        """Push every partition once, until no node wants more."""
        data = self._data
        if hasattr(data, "mapInArrow"):
            return self._push_frame()
        if hasattr(data, "mapPartitionsWithIndex"):
            job = data.mapPartitionsWithIndex(functools.partial(_push_partition, self._nodes, self._options))
            return _sum(Pushed(*outcome) for outcome in _collect(data.context, job))
        total = Pushed()
        for turn, partition in enumerate(_partitions(data)):
            total = _sum([total, push(self._nodes, partition, turn=turn, **self._options)])
            if not total.is_wanted:
                break
        return total

    def _push_frame(self) -> Pushed:
        from cargobike.estimators.spark_ml import with_arrays  # noqa: PLC0415 - needs pyspark

        frame = with_arrays(self._data)
        push_tables = functools.partial(_push_tables, self._nodes, self._options)
        with python_for_tasks(frame.sparkSession.sparkContext):
            types = "rows long, is_wanted boolean, problems array<string>, gone array<string>"
            job = frame.mapInArrow(push_tables, types)
        return _sum(Pushed(row.rows, row.is_wanted, tuple(row.problems), tuple(row.gone)) for row in job.collect())

    def results(self) -> Any:
        """Return results for each row, in order: an RDD for one, an iterator for anything else. Nothing is fed yet."""
        data = self._data.rdd if hasattr(self._data, "mapInArrow") else self._data
        answer = functools.partial(_answer_partition, self._nodes, self._options)
        if hasattr(data, "mapPartitionsWithIndex"):
            answered = data.mapPartitionsWithIndex(answer)
            with python_for_tasks(data.context):
                _ = answered._jrdd
            return answered
        return self._answered_here(answer)

    def _answered_here(self, answer: Callable[[int, Iterable[Any]], Iterator[Any]]) -> Iterator[Any]:
        def whole(numbered: tuple[int, Iterable[Any]]) -> list[Any]:
            return list(answer(*numbered))

        with ThreadPoolExecutor(len(self._nodes)) as pool:
            partitions = enumerate(_partitions(self._data))
            while some := list(itertools.islice(partitions, len(self._nodes))):
                yield from itertools.chain.from_iterable(pool.map(whole, some))


def _partitions(data: Any) -> Iterable[Iterable[Any]]:
    if hasattr(data, "to_pydict") and hasattr(data, "schema"):  # one table of Arrow
        return [[data]]
    if hasattr(data, "itertuples"):  # one frame of pandas
        return [data.itertuples(index=False, name=None)]
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise InvalidInputError(
            f"{type(data).__name__} was given; give an RDD, a DataFrame, or partitions, such as [[row, row], [row]]."
        )
    return map(_checked, data)


def _checked(partition: Any) -> Iterable[Any]:
    if isinstance(partition, str | bytes | dict) or not isinstance(partition, Iterable):
        raise InvalidInputError(
            f"A partition must hold rows, and {type(partition).__name__} does not: give a list of partitions, such as "
            "[[row, row], [row]], or [rows] for one."
        )
    return partition


def _collect(context: Any, job: Any) -> list[Any]:
    with python_for_tasks(context):
        _ = job._jrdd  # now its Python is chosen
    collected: list[Any] = job.collect()
    return collected


def _sum(outcomes: Iterable[Pushed]) -> Pushed:
    rows, is_wanted = 0, True
    problems: list[str] = []
    gone: list[str] = []
    for outcome in outcomes:
        rows += outcome.rows
        is_wanted &= outcome.is_wanted
        problems += outcome.problems
        gone += outcome.gone
    return Pushed(rows, is_wanted, tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(gone)))


def _push_partition(nodes: list[Node], options: dict[str, Any], turn: int, rows: Iterable[Any]) -> Iterator[Any]:
    pushed = push(nodes, rows, turn=turn, **options)
    yield pushed.rows, pushed.is_wanted, pushed.problems, pushed.gone


def _push_tables(nodes: list[Node], options: dict[str, Any], tables: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415 - where Spark has tables, it is there
    from pyspark import TaskContext  # noqa: PLC0415

    task = TaskContext.get()
    pushed = push(nodes, tables, turn=task.partitionId() if task else 0, **options)
    texts = pa.list_(pa.string())
    types = [("rows", pa.int64()), ("is_wanted", pa.bool_()), ("problems", texts), ("gone", texts)]
    row = {"rows": pushed.rows, "is_wanted": pushed.is_wanted, "problems": pushed.problems, "gone": pushed.gone}
    yield pa.RecordBatch.from_pylist([row], schema=pa.schema(types))


def _answer_partition(nodes: list[Node], options: dict[str, Any], turn: int, rows: Iterable[Any]) -> Iterator[Any]:
    return push_for_results(nodes[turn % len(nodes)], rows, **options)
