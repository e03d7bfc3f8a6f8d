"""What holds for every test; the fixtures are in `support`."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator

import hypothesis
import pytest

pytest_plugins = [
    "support.surroundings",
    "support.spark_applications",
    "support.rank_fixtures",
    "support.storage_servers",
    "support.parallel",
    "support.skips",
    "support.slow",
]

# No deadlines anywhere: how long an example takes says more about the machine than about the code. `ci` tries
# the same examples each time, so that a red run is about the change; `dev` tries new ones and prints how to
# repeat a failure.
# The same goes for how many inputs a strategy throws away: Hypothesis draws on constants of our sources, so that
# a change in one room would fail a test of another.
_health = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.filter_too_much]
hypothesis.settings.register_profile("dev", deadline=None, print_blob=True, suppress_health_check=_health)
hypothesis.settings.register_profile(
    "ci", deadline=None, print_blob=True, suppress_health_check=_health, derandomize=True, database=None
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect with the garbage collector off: what collecting makes stays, and is a quarter of the time to look at."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
