"""What writers and readers of a topic share: settings of the client, what a message is, words for what fails."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from confluent_kafka import KafkaError

from cargobike.core import settings
from cargobike.core.values.properties import read_properties

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
    return read_properties(settings.kafka_properties(), settings.KAFKA_PROPERTIES)


def words_of(error: Exception) -> str:
    """Return what a client says about a failure."""
    kafka = error.args[0] if error.args else error
    return kafka.str() if isinstance(kafka, KafkaError) else str(error)
