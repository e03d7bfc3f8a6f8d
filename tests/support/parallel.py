"""Keeps tests that share something expensive in one process, when several processes run the tests.

`make test` runs `pytest -n 4`: most tests go to any process that is free. Tests that share a server, a cluster or a
browser form a group, which one process runs, so that it is made once. That is read off the files: those that make a
fixture for all of their tests are a group each, and those that use one of the fixtures made for the whole session share
the group of that fixture.

xdist has groups of its own (`--dist loadgroup`), which it writes into the ids of tests. From pytest 9.2 on those ids
cannot be changed any more, and the groups are not kept.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer  # type: ignore[import-untyped]
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

FOLDERS = frozenset({"spark", "browser"})
"""Folders that are one group as a whole: two clusters or browsers at once would only take memory."""

SESSION_FIXTURES = {
    "spark_cluster": "spark",
    "spark_application": "spark",
    "spark_applications": "spark",
    "host": "host",
    "storage_url": "storage",
    "moto_endpoint": "storage",
    "seaweed": "storage",
    "seaweed_endpoint": "storage",
    "hdfs": "storage",
    "redis_server": "redis",
}
"""Fixtures of `support` that are made once, and the group of the tests that ask for them."""

_SHARED_IN_FILE = re.compile(r"""^@pytest\.fixture\(.*scope=["'](?:module|session)["']""", re.MULTILINE)
_ARGUMENT = re.compile(rf"\b({'|'.join(SESSION_FIXTURES)}): ")


@functools.cache
def group_of_file(path: Path) -> str | None:
    """Return the group of all tests in a file, or nothing if each of them may run anywhere."""
    if path.parent.name in FOLDERS:
        return path.parent.name
    text = path.read_text(encoding="utf-8")
    if used := _ARGUMENT.search(text):
        return SESSION_FIXTURES[used[1]]
    return path.as_posix() if _SHARED_IN_FILE.search(text) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Hand out tests one by one, and groups whole."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = config.rootpath / nodeid.partition("::")[0]
            return (group_of_file(file) if file.is_file() else None) or nodeid

    return Groups(config, log)
