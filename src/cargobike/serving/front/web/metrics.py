"""What Prometheus reads: written by hand, since a page of text in a few counters needs no library."""

from __future__ import annotations

import time
from collections.abc import Iterator

from cargobike.serving.front.desk.desk import Desk
from cargobike.serving.front.desk.tally import BUCKETS, SHORTEST_S, Tally
from cargobike.serving.inference_log.sink import Counts


class Metrics:
    """Counters of one front.

    Args:
        desk: Where most is counted already.
        deployment: Its name, which all figures carry.
        logged: What became of requests that were to be logged; `None` if none are.
    """

    def __init__(self, desk: Desk, deployment: str, logged: Counts | None = None) -> None:
        self._logged = logged
        self._desk = desk
        self._label = f'deployment="{_escaped(deployment)}"'
        self._statuses: dict[int, int] = {}
        self._codes: dict[str, int] = {}

    def count(self, status: int) -> None:
        """Count an answer."""
        self._statuses[status] = self._statuses.get(status, 0) + 1

    def count_call(self, code: str) -> None:
        """Count an answer over gRPC."""
        self._codes[code] = self._codes.get(code, 0) + 1

    def text(self) -> bytes:
        """Return everything in the text format of Prometheus."""
        return "".join(f"{line}\n" for line in self._lines()).encode()

    def _lines(self) -> Iterator[str]:
        desk, label = self._desk, self._label
        yield from _head("cargobike_http_answers_total", "counter", "Answers to requests of any kind, by status.")
        for status, number in sorted(self._statuses.items()):
            yield f'cargobike_http_answers_total{{{label},status="{status}"}} {number}'
        if self._codes:
            yield from _head("cargobike_grpc_answers_total", "counter", "Answers to calls over gRPC, by code.")
            for code, number in sorted(self._codes.items()):
                yield f'cargobike_grpc_answers_total{{{label},code="{code}"}} {number}'
        yield from _head("cargobike_requests_total", "counter", "Requests for predictions, also those refused.")
        yield f"cargobike_requests_total{{{label}}} {desk.arrived}"
        wait_s = desk.longest_wait(time.monotonic())
        yield from self._gauge("cargobike_longest_wait_seconds", "How long the oldest request waits.", wait_s)
        in_flight = desk.waiting + desk.at_work
        yield from self._gauge("cargobike_rows_in_flight", "Rows that wait or are at work.", in_flight)
        yield from self._gauge("cargobike_rows_waiting", "Rows that wait for a replica.", desk.waiting)
        yield from self._gauge("cargobike_rows_at_work", "Rows that replicas are working on.", desk.at_work)
        yield from _head("cargobike_replicas", "gauge", "Replicas that are connected, by version.")
        versions = list(desk.replicas.values())
        for version in sorted(set(versions)):
            yield f'cargobike_replicas{{{label},version="{version}"}} {versions.count(version)}'
        yield from _head("cargobike_requests_refused_total", "counter", "Requests that were not let into the queue.")
        yield f"cargobike_requests_refused_total{{{label}}} {desk.refused}"
        yield from self._by_version("cargobike_requests_failed_total", "Requests that a version failed.", "failed")
        yield from self._by_version("cargobike_shadow_differed_total", "Answers unlike those served.", "differed")
        yield from self._by_version("cargobike_batches_total", "Batches that replicas were given.", "batches")
        yield from self._by_version("cargobike_rows_total", "Rows that replicas were given.", "rows")
        yield from self._by_version("cargobike_predict_seconds_total", "Time of batches at replicas.", "predict_s")
        if self._logged is not None:
            name = "cargobike_log_requests_total"
            yield from _head(name, "counter", "Requests that were to be logged, by what became of them.")
            yield f'{name}{{{label},outcome="written"}} {self._logged.written}'
            yield f'{name}{{{label},outcome="dropped"}} {self._logged.dropped}'
            name = "cargobike_log_failures_total"
            yield from _head(name, "counter", "Writes of the log that failed, and are tried again.")
            yield f"{name}{{{label}}} {self._logged.failures}"
        name = "cargobike_request_seconds"
        yield from _head(name, "histogram", "Time from the arrival of a request to its answer.")
        for version, tally in sorted(desk.tallies.items()):
            yield from _histogram(name, f'{label},version="{version}"', tally)

    def _gauge(self, name: str, words: str, value: float) -> Iterator[str]:
        yield from _head(name, "gauge", words)
        yield f"{name}{{{self._label}}} {value}"

    def _by_version(self, name: str, words: str, field: str) -> Iterator[str]:
        yield from _head(name, "counter", words)
        for version, tally in sorted(self._desk.tallies.items()):
            yield f'{name}{{{self._label},version="{version}"}} {getattr(tally, field)}'


def _histogram(name: str, label: str, tally: Tally) -> Iterator[str]:
    total = 0
    for place, number in enumerate(tally.latencies):
        total += number
        limit = "+Inf" if place == BUCKETS - 1 else f"{SHORTEST_S * 2**place:.4g}"
        yield f'{name}_bucket{{{label},le="{limit}"}} {total}'
    yield f"{name}_sum{{{label}}} {tally.latency_sum_s}"
    yield f"{name}_count{{{label}}} {total}"


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
