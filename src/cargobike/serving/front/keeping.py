"""The inference log as the front sees it: a place to put requests and answers that never makes it wait."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from cargobike.core.errors import CargobikeError
from cargobike.core.signatures import Signature
from cargobike.serving.inference_log.log import InferenceLog
from cargobike.serving.specification import Specification

_log: Final = logging.getLogger(__name__)


class Log(Protocol):
    """Keeps requests and answers.

    Guarantees: `take` never waits and never raises; what cannot be kept is counted.
    """

    def take(  # noqa: PLR0917 - called for every request
        self,
        request_id: str,
        at: float,
        latency_s: float,
        version: int,
        status: int,
        rows: Sequence[Any] | None,
        answers: Sequence[Any] | None,
        size: int = 0,
    ) -> None:
        """Keep one request and its answers."""
        ...

    def close(self, within_s: float = 5.0) -> None:
        """Keep what was taken, and end."""
        ...


def open_log(
    specification: Specification, project: str, model: str, signatures: Mapping[int, Signature | None]
) -> Log | None:
    """Return the log that was asked for; `None` if there is none, or it cannot be opened: requests come first."""
    if not specification.logging.sample:
        return None
    try:
        return InferenceLog(specification, project, model, signatures)
    except CargobikeError as error:
        _log.error("requests are not logged: %s", error)
        return None
