"""What a server's refusal means here: one of our own errors, with the words of the server."""

from __future__ import annotations

from typing import Final

import msgspec

from cargobike.core import settings
from cargobike.core.errors import (
    AuthenticationError,
    CargobikeError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    ServerRefusedError,
    StoreError,
)
from cargobike.ui.answers import Problem

_LONGEST: Final = 4000


def error_of(status: int, body: bytes, server: str) -> CargobikeError:
    """Return the error that a refusal stands for.

    Args:
        status: The status of the answer.
        body: The answer: a `Problem`, or anything if something else than our server answered.
        server: Its address, for the message.
    """
    problem = _problem(status, body)
    words = f"{problem.detail} (from {server})"
    match status:
        case 401:
            return AuthenticationError(
                f"{server} asks for a token that it knows: give token=…, {settings.TOKEN} or {settings.TOKEN_FILE}. "
                "A person who administers the project makes one with: cargobike tokens create NAME"
            )
        case 403:
            return ForbiddenError(words)
        case 404:
            return NotFoundError(words, nearest=problem.nearest)
        case 400 | 413 | 414 | 415 | 421 | 422:
            return InvalidInputError(words, [mistake.what for mistake in problem.mistakes if not mistake.where])
        case 503:
            return StoreError(words)
        case _:
            return ServerRefusedError(words)


def _problem(status: int, body: bytes) -> Problem:
    try:
        return msgspec.json.decode(body, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        text = body[:_LONGEST].decode("utf-8", "replace")
        return Problem(f"The server answered with status {status}: {' '.join(text.split())[:300] or 'nothing'}.")
