"""What writers and readers of a topic share: settings of the client, what a message is, words for what fails."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from confluent_kafka import KafkaError

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError

SIGNATURE: Final = "signature"
"""The header of a message that holds what its version takes and returns, as JSON."""

_YEAR_9999: Final = 253_370_764_800


class KafkaMessage(msgspec.Struct, frozen=True):
    """What a message holds; `at` is in seconds since 1970. Limits are those of the columns that it becomes."""

    request_id: str
    at: Annotated[float, msgspec.Meta(ge=0, lt=_YEAR_9999)]
    latency_ms: float
    model: str
    version: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    status: Annotated[int, msgspec.Meta(ge=0, lt=2**15)]
    rows: list[Any] | None
    answers: list[Any] | None


def client_properties() -> dict[str, str]:
    """Return the user's own settings, secrets among them: they are in a file, and nowhere else.

    Raises:
        InvalidInputError: If that file cannot be read.
    """
    path = settings.kafka_properties()
    if not path:
        return {}
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{settings.KAFKA_PROPERTIES} names {path}, which cannot be read: {error}") from error
    pairs = (line.partition("=") for line in map(str.strip, lines) if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def words_of(error: Exception) -> str:
    """Return what a client says about a failure."""
    kafka = error.args[0] if error.args else error
    return kafka.str() if isinstance(kafka, KafkaError) else str(error)
