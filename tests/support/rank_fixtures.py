"""One process with PyTorch ready, from which the ranks of all tests here are forked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.rank_host import RankHost


@pytest.fixture(scope="session")
def host() -> Iterator[RankHost]:
    host = RankHost()
    yield host
    host.close()
