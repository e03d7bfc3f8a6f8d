"""`hops.kafka`: settings for a client of Kafka, and Avro messages."""

from __future__ import annotations

import io
import json
from typing import Any

from cargobike.compat.hops.translating.files import MissingPathError, ProjectFiles
from cargobike.compat.noticing import formerly
from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, MissingLibraryError
from cargobike.serving.inference_log.kafka.client import client_properties

__all__ = [
    "convert_json_schema_to_avro",
    "get_broker_endpoints",
    "get_broker_endpoints_list",
    "get_kafka_default_config",
    "get_schema",
    "get_security_protocol",
    "parse_avro_msg",
]


@formerly("hops.kafka.get_broker_endpoints")
def get_broker_endpoints() -> str:
    """Return the brokers, `host:port` with commas between.

    Raises:
        InvalidInputError: If they are not set.
    """
    brokers = client_properties().get("bootstrap.servers", "")
    if not brokers:
        raise InvalidInputError(
            f"No brokers are set: write bootstrap.servers=host:9092 into a file, and name it in "
            f"{settings.KAFKA_PROPERTIES}."
        )
    return brokers


def get_broker_endpoints_list() -> list[str]:
    """Return the brokers, each as `host:port`."""
    return get_broker_endpoints().split(",")


@formerly("hops.kafka.get_security_protocol")
def get_security_protocol() -> str:
    """Return how connections are secured, as it is set; `PLAINTEXT` if it is not."""
    return client_properties().get("security.protocol", "PLAINTEXT")


@formerly("hops.kafka.get_kafka_default_config")
def get_kafka_default_config() -> dict[str, str]:
    """Return settings for a producer or consumer of confluent-kafka: all that are set, and a group."""
    return {
        "group.id": "something",
        "security.protocol": get_security_protocol(),
        **client_properties(),
        "bootstrap.servers": get_broker_endpoints(),
    }


@formerly("hops.kafka.get_schema")
def get_schema(topic: str) -> str:
    """Return the Avro schema of a topic as JSON, from `kafka/<topic>.avsc` in the project.

    Raises:
        MissingPathError: If it is not there.
    """
    files = ProjectFiles()
    path = files.inner(f"kafka/{topic}.avsc")
    try:
        with files.open_read(path) as file:
            return file.read().decode("utf-8")
    except MissingPathError:
        raise MissingPathError(
            f"The schema of {topic!r} is not in the project: write it there, hdfs.dump(schema, 'kafka/{topic}.avsc')."
        ) from None


@formerly("hops.kafka.convert_json_schema_to_avro")
def convert_json_schema_to_avro(json_schema: str) -> Any:
    """Return a schema that messages can be read by.

    Raises:
        InvalidInputError: If it is no Avro schema.
    """
    avro = _avro()
    try:
        return avro.parse_schema(json.loads(json_schema))
    except (ValueError, avro.schema.SchemaParseException, avro.schema.UnknownType) as error:
        raise InvalidInputError(f"This is no Avro schema: {error}") from error


@formerly("hops.kafka.parse_avro_msg")
def parse_avro_msg(msg: bytes, avro_schema: Any) -> Any:
    """Return what an Avro message holds, as plain data."""
    schema = convert_json_schema_to_avro(avro_schema) if isinstance(avro_schema, str) else avro_schema
    return _avro().schemaless_reader(io.BytesIO(msg), schema, None)


def _avro() -> Any:
    try:
        import fastavro  # noqa: PLC0415 - optional, and only for messages in Avro
    except ImportError as error:
        raise MissingLibraryError(
            "Messages in Avro need fastavro, which is not installed. Install it: pip install 'cargobike[avro]'.",
            name="fastavro",
        ) from error
    return fastavro
