"""Limits as users set them: kept in the network's folder, and handed to the governor."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.plain_files import read_plain
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.daemon.messages import SetLimits
from cargobike.sharing.governor.limits import Limits, parse_hours, parse_rate

_NAME = "limits.json"


def read_limits(folder: Path) -> SetLimits:
    """Return the limits that were set; none if the file is missing or damaged."""
    with contextlib.suppress(OSError, *UNDECODABLE):
        return msgspec.json.decode(read_plain(folder / _NAME), type=SetLimits)
    return SetLimits()


def write_limits(folder: Path, limits: SetLimits) -> None:
    """Keep limits for the next start."""
    temporary = folder / f".{_NAME}.{secrets.token_hex(4)}"
    try:
        temporary.write_bytes(msgspec.json.encode(limits))
        os.replace(temporary, folder / _NAME)
    except OSError as error:
        raise StoreError(f"{folder / _NAME} cannot be written: {error.strerror}.") from error


def merged(old: SetLimits, new: SetLimits) -> SetLimits:
    """Return limits after a change.

    Example:
        >>> merged(SetLimits(send="1MB/s"), SetLimits(receive="2MB/s")).send
        '1MB/s'
    """
    peers = {**(old.peers or {}), **(new.peers or {})}
    return SetLimits(
        send=old.send if new.send is None else new.send,
        receive=old.receive if new.receive is None else new.receive,
        peers={peer: rate for peer, rate in peers.items() if parse_rate(rate) is not None} or None,
        hours=old.hours if new.hours is None else new.hours,
        gives_way=old.gives_way if new.gives_way is None else new.gives_way,
    )


def as_limits(limits: SetLimits) -> Limits:
    """Return limits as the governor understands them.

    Raises:
        InvalidInputError: If a rate or hours cannot be read; lists all that cannot.
    """
    mistakes: list[str] = []

    def rate(text: str | None) -> float | None:
        try:
            return None if text is None else parse_rate(text)
        except InvalidInputError as error:
            mistakes.append(str(error))
            return None

    send, receive = rate(limits.send), rate(limits.receive)
    peers = {peer: allowed for peer, text in (limits.peers or {}).items() if (allowed := rate(text)) is not None}
    hours = []
    for text in limits.hours or ():
        try:
            hours.append(parse_hours(text))
        except InvalidInputError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InvalidInputError("These limits cannot be set.", mistakes)
    return Limits(
        send_rate=send,
        receive_rate=receive,
        peers=peers,
        hours=tuple(hours),
        gives_way=limits.gives_way is not False,
    )
