"""Adding up what the front says about requests."""

from __future__ import annotations

from cargobike.serving.supervising.traffic import TrafficCount, quantile_ms
from cargobike.serving.wire import Load, VersionLoad


def test_requests_are_counted_for_the_last_seconds_and_since_the_start() -> None:
    count = TrafficCount()
    for second in range(100):
        version = VersionLoad(answered=9, failed=1, latency_sum_s=0.1, latencies=[0, 10])
        count.add(float(second), Load(float(second), 10, 3, 2, 0.1, refused=1, versions={1: version}))
    traffic = count.summary(99.0)
    assert (traffic.answered, traffic.failed, traffic.refused) == (900, 100, 100)
    assert (traffic.waiting, traffic.at_work, traffic.per_s) == (3, 2, 10.0)
    assert (traffic.p50_ms, traffic.p99_ms) == (0.15, 0.199)
    later = count.summary(300.0)
    assert (later.per_s, later.p50_ms, later.answered) == (0.0, None, 900)


def test_quantiles_lie_between_the_bounds_of_their_class() -> None:
    assert quantile_ms([], 0.5) is None
    assert quantile_ms([0, 0, 0], 0.5) is None
    assert quantile_ms([1], 1.0) == 0.1
    assert quantile_ms([50, 50], 0.5) == 0.1
    assert quantile_ms([50, 50], 0.99) == 0.198
