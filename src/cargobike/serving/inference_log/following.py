"""Where other products begin to follow the log of a deployment: `core/registering/following.py` says what they get."""

from __future__ import annotations

from typing import Any

import msgspec

from cargobike.core.errors import NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import Follower, Logged
from cargobike.core.registering.lazy import in_words
from cargobike.serving.inference_log.following_files import FileFollower, FilePiece
from cargobike.serving.inference_log.following_files import read_piece as read_file_piece
from cargobike.serving.inference_log.places import DEPLOYMENTS, log_folder
from cargobike.serving.record import find_record
from cargobike.serving.supervising.finding import model_name
from cargobike.store.files.storages import open_storage, storage_of


def follow(deployment: str, project: ProjectFolder) -> Follower:
    """Return a follower of the log of a deployment, wherever that lies.

    Raises:
        NotFoundError: If there is no such deployment.
    """
    logged = about(deployment, project)
    if logged.kafka:
        kafka: Follower = _kafka().KafkaFollower(logged.kafka, logged.topic)
        return kafka
    storage = open_storage(logged.url) if logged.url else storage_of(project)
    return FileFollower(storage, log_folder(deployment))


def read_piece(piece: bytes) -> Any:
    """Return the rows of one piece of a log, in any process.

    Raises:
        StoreError: If the log cannot be reached now, or has lost them.
    """
    try:
        return read_file_piece(msgspec.json.decode(piece, type=FilePiece))
    except msgspec.ValidationError:
        return _kafka().read_piece(piece)


def _kafka() -> Any:
    try:
        from cargobike.serving.inference_log.kafka import following  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise in_words(error, "Following a log in Kafka", "kafka") from error
    return following


def about(deployment: str, project: ProjectFolder) -> Logged:
    """Return what is known of a log; of a deployment of another host only that there is one.

    Raises:
        NotFoundError: If there is no such deployment.
    """
    folder = log_folder(deployment)
    try:
        record = find_record(project, deployment)
    except NotFoundError:
        if next(storage_of(project).list(f"{DEPLOYMENTS}/{deployment}", deep=True), None) is None:
            raise
        return Logged(url="", folder=folder)
    asked = record.specification
    return Logged(
        model=model_name(asked.model),
        version=record.current or asked.version,
        sample=asked.logging.sample,
        redacted=asked.logging.redact,
        url=asked.logging.url,
        folder=folder,
        kafka=asked.logging.kafka,
        topic=asked.logging.topic or deployment,
    )
