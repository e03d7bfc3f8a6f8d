"""Watching on Spark: the same windows, statistics and alarms as on one machine, from files and from Kafka."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import psutil
import pytest
from confluent_kafka import Producer

from cargobike import monitoring
from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.signatures import Field, Signature
from cargobike.monitoring.facts import AnyMonitorFact
from cargobike.monitoring.record import MonitorRecord, find_record, folder_of
from cargobike.monitoring.running.keeping import Keeper
from cargobike.monitoring.running.process import watch_until
from cargobike.serving.facts import DeploymentStarted
from cargobike.serving.inference_log.log import InferenceLog
from cargobike.serving.record import folder_of as deployment_folder
from cargobike.serving.specification import Logging, Specification
from cargobike.store.files import project as projects
from cargobike.store.journal.journal import JournalWriter
from support.logged_requests import NOON, logging_to
from support.watched_rows import small_reference, usual

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)

PEOPLE = Signature((Field("age", "FP64"), Field("town", "BYTES")), (Field("score", "FP64"),))


@pytest.fixture
def project(spark_applications: SparkApplications) -> Iterator[ProjectFolder]:
    spark_applications.context()
    yield projects.prepare()
    spark_applications.close()  # with the processes that plan what streams read


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1"})
    (one,) = owner.list_topics(timeout=10).brokers.values()
    yield f"{one.host}:{one.port}"
    owner.flush(1)


def ask(log: InferenceLog, first: int, end: int, moved: float = 0.0) -> None:
    rows = usual(end - first, seed=first, moved=moved)
    for place, number in enumerate(range(first, end)):
        row = {"age": float(rows["age"][place]), "town": str(rows["town"][place])}
        log.take(f"r{number}", NOON + number, 0.001, 1 + (number >= 280), 200, [row], [0.5])


def watch(project: ProjectFolder, engine: str, windows: int, **asked: Any) -> list[Any]:
    """Watch in this process until there are so many windows; return what their facts say."""
    name = f"people-{engine}"
    monitoring.watch("people", small_reference(), alarm="1 of 2", name=name, engine=engine, start=False, **asked)
    folder, over = folder_of(project, name), threading.Event()
    thread = threading.Thread(target=watch_until, args=(over, folder))
    thread.start()
    try:
        for _ in range(2000):
            if len(find_record(project, name).windows) >= windows:
                break
            assert thread.is_alive()
            over.wait(0.05)
    finally:
        over.set()
        thread.join(60)
    return said(find_record(project, name))


def said(record: MonitorRecord) -> list[Any]:
    """Return what the facts of a monitor say, without when they were written, and where the log was then."""
    facts = [*record.windows, *(alarm.raised for alarm in record.alarms)]
    return [{**msgspec.to_builtins(fact), "at": 0, "position": ""} for fact in facts]


def test_files_give_the_same_windows_also_when_facts_could_not_be_kept_at_first(
    project: ProjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    signatures = {1: PEOPLE, 2: PEOPLE}
    for first, end in ((0, 70), (70, 230)):
        with logging_to(project.root, signatures, name="people") as log:
            ask(log, first, end)
    assert len(watch(project, "spark", 4, window=50)) == 4
    with logging_to(project.root, signatures, name="people") as log:
        ask(log, 230, 450, moved=2.0)
    commit, failures = Keeper.commit, iter([StoreError("the disk is full")])

    def fail_once(keeper: Keeper, kept: Any, facts: Sequence[AnyMonitorFact], judgements: Any = None) -> None:
        if judgements:
            for failure in failures:
                raise failure
        commit(keeper, kept, facts, judgements)

    monkeypatch.setattr(Keeper, "commit", fail_once)
    on_spark = watch(project, "spark", 9, window=50)
    assert next(failures, None) is None, "it has failed once"
    here = watch(project, "local", 9, window=50)
    assert on_spark == here
    assert [fact["rows"] for fact in here] == [50, 50, 50, 50, 50, 50, 50, 30, 50, 50], "nine windows and an alarm"
    assert any(fact.get("unusual") for fact in on_spark)


def test_a_topic_gives_the_same_windows(project: ProjectFolder, broker: str, tmp_path: Path) -> None:
    specification = Specification(name="people", model="people", logging=Logging(kafka=broker, topic="people"))
    folder = deployment_folder(project, "people")
    folder.root.mkdir(parents=True)
    journal = JournalWriter(folder.journal)
    journal.append([DeploymentStarted(at=NOON, id="people", specification=specification)])
    journal.close()
    with logging_to(tmp_path, {1: PEOPLE, 2: PEOPLE}, name="people", kafka=broker, topic="people") as log:
        ask(log, 0, 300)
    on_spark = watch(project, "spark", 7, window="50s", lateness="1s")
    here = watch(project, "local", 7, window="50s", lateness="1s")
    assert on_spark == here
    assert [fact["rows"] for fact in here] == [50, 50, 50, 50, 50, 30, 20], "no window mixes versions"


def test_a_watcher_that_is_killed_leaves_no_java_and_goes_on_where_the_monitor_was() -> None:
    project, signatures = projects.prepare(), {1: PEOPLE, 2: PEOPLE}
    with logging_to(project.root, signatures, name="people") as log:
        ask(log, 0, 170)
    asked: dict[str, Any] = {"window": 50, "alarm": "1 of 2", "engine": "spark:local[1]", "from_beginning": True}
    monitor = monitoring.watch("people", small_reference(), detach=True, **asked)
    monitor.wait(120, windows=3, alarms=0)
    watcher = psutil.Process(monitor.record().pid)
    below = watcher.children(recursive=True)
    assert any("java" in process.name() for process in below)
    watcher.kill()
    _, alive = psutil.wait_procs(below, timeout=60)
    assert not alive, [process.cmdline() for process in alive]
    with logging_to(project.root, signatures, name="people") as log:
        ask(log, 170, 450, moved=2.0)
    monitor.start(detach=True)
    monitor.wait(120, windows=9, alarms=0)
    monitor.stop()
    assert said(find_record(project, "people")) == watch(project, "local", 9, window=50, from_beginning=True)
