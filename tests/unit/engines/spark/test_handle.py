"""A worker on Spark: what it says of its job, with a context that only pretends to run one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from cargobike.core.running.ending import Ending, EndKind
from cargobike.engines.spark import handle as handles
from cargobike.engines.spark.handle import SparkHandle
from cargobike.engines.spark.tether import Placed

PATIENCE_S = 30.0
PLACE = Placed(worker="w1", task="7.0", host="there", address="10.0.0.1", executor="3", pid=42, cpus=2)
CRASHED = Ending(EndKind.CRASHED, "exited with code 3")


class Context:
    """As much of a Spark context as a job needs: runs the task's words, or raises, when it is allowed to."""

    master = "spark://head:7077"
    _jrdd = None

    def __init__(self, collect: Callable[[], list[dict[str, str]]]) -> None:
        self._collect = collect
        self.cancelled: list[str] = []
        self.heard_cancel = threading.Event()
        self.tags: list[str] = []

    def addJobTag(self, tag: str) -> None:
        self.tags.append(tag)

    def getConf(self) -> dict[str, str]:
        return {}

    def setJobDescription(self, text: str) -> None:
        assert text == "cargobike worker w1"

    def parallelize(self, *_: object) -> Context:
        return self

    def mapPartitions(self, _: object) -> Context:
        return self

    def collect(self) -> list[dict[str, str]]:
        return self._collect()

    def cancelJobsWithTag(self, tag: str) -> None:
        self.cancelled.append(tag)
        self.heard_cancel.set()


class Engine:
    """What a worker asks of its engine."""

    def __init__(self) -> None:
        self.pulled: list[str] = []
        self.reachable = True
        self.given_up: list[str] = []
        self.cluster: Any = self

    def describe(self) -> str:
        return "All cores are busy."

    def pull(self, worker: str) -> bool:
        self.pulled.append(worker)
        return self.reachable

    def unfit(self, why: str) -> Ending:
        return Ending(EndKind.HOPELESS, why)

    def lost(self, handle: SparkHandle, place: Placed) -> None:
        self.given_up.append(place.worker)
        handle.end(Ending(EndKind.PLACE_LOST, "its connection closed"))


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def worker(engine: Engine) -> SparkHandle:
    need: Any = None  # only Spark's own scheduling looks at it
    return SparkHandle("w1", engine, need)


def run(worker: SparkHandle, collect: Callable[[], list[dict[str, str]]]) -> Context:
    context = Context(collect)
    worker.submit(context, None, None)
    worker.wait(PATIENCE_S)
    return context


def fail(text: str) -> Callable[[], list[dict[str, str]]]:
    def collect() -> list[dict[str, str]]:
        raise RuntimeError(text)

    return collect


def test_the_job_says_how_the_worker_ended(worker: SparkHandle) -> None:
    assert worker.poll() is None
    run(worker, lambda: [{"kind": "crashed", "text": "exited with code 3"}])
    assert worker.poll() == CRASHED
    assert worker.is_over


def test_the_first_word_about_an_end_counts(worker: SparkHandle) -> None:
    worker.end(CRASHED)
    run(worker, list)
    assert worker.poll() == CRASHED


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        ("boom\nCaused by: the disk\n", Ending(EndKind.PLACE_LOST, "ended with its Spark job: Caused by: the disk")),
        ("boom\nand more", Ending(EndKind.PLACE_LOST, "ended with its Spark job: boom")),
    ],
)
def test_a_job_that_fails_takes_the_worker_along(worker: SparkHandle, error: str, ending: Ending) -> None:
    run(worker, fail(error))
    assert worker.poll() == ending


@pytest.mark.parametrize(
    "error",
    ["[PYTHON_VERSION_MISMATCH] …", 'java.io.IOException: Cannot run program "/no/python": error=2, No such file'],
)
def test_another_python_on_the_executors_is_named(worker: SparkHandle, error: str) -> None:
    run(worker, fail(error))
    ending = worker.poll()
    assert ending is not None
    assert ending.kind is EndKind.HOPELESS, "as the engine says"
    assert "set PYSPARK_PYTHON" in ending.text


def test_a_worker_turned_away_is_tried_again_elsewhere(worker: SparkHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "_TRY_ELSEWHERE_AFTER_S", 0.0)
    excluded = fail("executor 3 is excluded, because workers kept dying")
    rounds: list[int] = []

    def collect() -> list[dict[str, str]]:
        rounds.append(1)
        return excluded() if len(rounds) == 1 else [{"kind": "left", "text": "x"}]

    run(worker, collect)
    assert worker.poll() is None
    worker.look_after(time.monotonic() + 1, wait_s=60)
    worker.wait(PATIENCE_S)
    assert worker.poll() == Ending(EndKind.LEFT, "x")


def test_a_kill_goes_over_the_tether_and_spark_is_asked_only_if_that_does_not_help(
    worker: SparkHandle, engine: Engine
) -> None:
    has_begun, may_end = threading.Event(), threading.Event()

    def collect() -> list[dict[str, str]]:
        has_begun.set()
        assert may_end.wait(PATIENCE_S)
        return []

    context = Context(collect)
    worker.submit(context, None, None)
    assert has_begun.wait(PATIENCE_S)
    worker.place = PLACE
    worker.kill()
    worker.kill()
    assert engine.pulled == ["w1"]
    worker.look_after(time.monotonic(), wait_s=60)
    assert not context.cancelled
    worker.look_after(time.monotonic() + handles.CANCEL_AFTER_S, wait_s=60)
    assert context.heard_cancel.wait(PATIENCE_S)
    may_end.set()
    worker.wait(PATIENCE_S)
    assert context.cancelled == context.tags


def test_a_worker_without_a_place_is_cancelled_at_once(worker: SparkHandle, engine: Engine) -> None:
    def cancelled() -> list[dict[str, str]]:
        assert context.heard_cancel.wait(PATIENCE_S)
        raise RuntimeError("Job cancelled")

    context = Context(cancelled)
    worker.submit(context, None, None)
    worker.kill()
    worker.wait(PATIENCE_S)
    assert engine.pulled == []
    assert worker.poll() in (
        Ending(EndKind.ENDED, "was cancelled"),
        Ending(EndKind.ENDED, "was cancelled before it had a place"),
    )


def test_waiting_for_a_place_has_an_end(worker: SparkHandle) -> None:
    worker.look_after(time.monotonic() + 59, wait_s=60)
    assert worker.poll() is None
    worker.look_after(time.monotonic() + 61, wait_s=60)
    assert worker.poll() == Ending(EndKind.NOT_STARTED, "waited 60 s in vain for a place. All cores are busy.")


def test_a_connection_may_come_back_before_the_worker_is_given_up(
    worker: SparkHandle, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.place, worker.cut_at = PLACE, time.monotonic()
    monkeypatch.setattr(handles, "COME_BACK_S", 1000.0)
    assert worker.poll() is None
    monkeypatch.setattr(handles, "COME_BACK_S", -1.0)
    assert worker.poll() == Ending(EndKind.PLACE_LOST, "its connection closed")
    assert engine.given_up == ["w1"]
