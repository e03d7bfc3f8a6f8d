"""What becomes of a train function on its way to a worker, without a worker."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from cargobike.core.asked import Aim, Asked, Gang, Keeping, Placement, Search
from cargobike.core.errors import FunctionError
from cargobike.experiments.asking.function import find_train
from cargobike.experiments.asking.shipping import PARAMETER_SERVER, make_payload, ship


def plain(x: Any) -> Any:
    return 2 * x


@functools.lru_cache
def remembering(x: float) -> float:
    return 2 * x


def with_reporter(x: float, reporter: Any) -> float:
    return x


def test_a_function_comes_back_as_it_was() -> None:
    shipment = ship(find_train(plain))
    payload = make_payload(Asked(), shipment)
    assert payload.load()(x=4) == 8
    assert "return 2 * x" in shipment.source
    assert shipment.file == __file__
    assert not shipment.wants_reporter


def test_a_partial_and_a_cached_function_travel() -> None:
    assert make_payload(Asked(), ship(find_train(functools.partial(plain, x=5)))).load()() == 10
    assert make_payload(Asked(), ship(find_train(remembering))).load()(x=3) == 6


def test_a_reporter_is_noticed() -> None:
    assert ship(find_train(with_reporter)).wants_reporter


def closure_over_a_lock() -> Callable[..., float]:
    lock = threading.Lock()

    def train(x: float) -> float:
        with lock:
            return x

    return train


@pytest.mark.parametrize(
    ("function", "culprit"),
    [
        (closure_over_a_lock(), r"the variable 'lock' of its closure is a lock, which cannot be pickled"),
        (functools.partial(plain, x=threading.Lock()), r"the argument 'x' of the partial is a lock"),
    ],
)
def test_what_cannot_travel_is_named(function: Callable[..., float], culprit: str) -> None:
    with pytest.raises(FunctionError, match=culprit):
        ship(find_train(function))


def test_the_payload_says_what_was_asked() -> None:
    asked = Asked(
        search=Search(params={"x": 1}),
        aim=Aim(direction="min", metric="loss", constraints=("latency_ms <= 50",)),
        placement=Placement(gang=Gang(size=2, servers=1, options={"staleness": 8})),
        keeping=Keeping(durability="power", working_directory="launch"),
    )
    payload = make_payload(asked, ship(find_train(plain)))
    assert (payload.direction, payload.metric, payload.needed_metrics) == ("min", "loss", ["latency_ms"])
    assert (payload.server, payload.options) == (PARAMETER_SERVER, {"staleness": 8})
    assert payload.value_is_optional
    assert not payload.own_directory
    assert payload.force_checkpoints_every_s == 0.0


def test_modules_travel_only_to_other_machines() -> None:
    shipment = ship(find_train(plain))
    assert make_payload(Asked(), shipment).modules == {}
    assert __name__ in make_payload(Asked(), shipment, travels=True).modules


def test_a_payload_survives_its_encoding() -> None:
    payload = make_payload(Asked(), ship(find_train(plain)))
    assert type(payload).decode(payload.encode()) == payload
