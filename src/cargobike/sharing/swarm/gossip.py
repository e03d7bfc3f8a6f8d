"""Spread signed records: two members compare how far they are with each publisher, and each gives what the other lacks.

Records are verified by the catalogue before they are kept, so it does not matter who brings them. One that is refused
stops what its bringer brings: honest members have verified it before.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from cargobike.core.errors import ConnectionLostError
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.catalogue.store import Catalogue
from cargobike.sharing.identity.keys import short
from cargobike.sharing.records import RecordError, Signed
from cargobike.sharing.wire.member import Member
from cargobike.sharing.wire.messages import AskEntries, Entries, Offer, Taken

_log = logging.getLogger(__name__)
_MOST_RECORDS: Final = 500
_MOST_BYTES: Final = 8 << 20
_MOST_ROUNDS: Final = 1000
_MOST_PUBLISHERS: Final = 8000
_records = msgspec.msgpack.Decoder(Annotated[list[Signed], Meta(max_length=_MOST_RECORDS)])


def spread(member: Member, catalogue: Catalogue) -> tuple[int, int]:
    """Take from a member what we lack, and give it what it lacks; return how many records came and went.

    Raises:
        ConnectionError: If it goes away, or brings a record that is forged.
    """
    came, theirs = 0, {}
    for _ in range(_MOST_ROUNDS):
        answer, body = member.ask(AskEntries(newest=_bounded(catalogue.newest())))
        if not isinstance(answer, Entries):
            raise ConnectionLostError(f"{member.address} answers something else than was asked")
        new = _take(member, body, catalogue)
        came, theirs = came + new, answer.newest
        if not answer.more or not new:
            break
    return came, _offer(member, catalogue, theirs)


def answer_entries(member: Member, question: AskEntries, catalogue: Catalogue) -> None:
    """Give a member what it lacks, as much as fits."""
    records, more = _lacking(catalogue, question.newest)
    member.say(Entries(newest=_bounded(catalogue.newest()), more=more), msgspec.msgpack.encode(records))


def take_offer(member: Member, body: bytes, catalogue: Catalogue) -> None:
    """Take what a member brings."""
    member.say(Taken(count=_take(member, body, catalogue)))


def _offer(member: Member, catalogue: Catalogue, theirs: Mapping[str, int]) -> int:
    went, position = 0, dict(theirs)
    for _ in range(_MOST_ROUNDS):
        records, more = _lacking(catalogue, position)
        if not records:
            break
        answer, _ = member.ask(Offer(), msgspec.msgpack.encode(records))
        if not isinstance(answer, Taken):
            raise ConnectionLostError(f"{member.address} answers something else than was asked")
        went += answer.count
        if not more or not answer.count:
            break
        sent: dict[str, int] = {}
        for record in records:
            sent[record.publisher] = sent.get(record.publisher, 0) + 1
        own = catalogue.newest()
        for publisher, count in sent.items():
            position[publisher] = min(position.get(publisher, 0) + count, own.get(publisher, 0))
    return went


def _lacking(catalogue: Catalogue, newest: Mapping[str, int]) -> tuple[list[Signed], bool]:
    """Return records that come after those numbers, and whether there are more than were returned."""
    records: list[Signed] = []
    size = 0
    for publisher, last in sorted(catalogue.newest().items()):
        after = newest.get(publisher, 0)
        if after >= last:
            continue
        for signed in catalogue.since(publisher, after, _MOST_RECORDS - len(records) or 1):
            size += len(signed.body)
            if records and (size > _MOST_BYTES or len(records) >= _MOST_RECORDS):
                return records, True
            records.append(signed)
            after += 1
        if after < last:
            return records, True
    return records, False


def _take(member: Member, body: bytes, catalogue: Catalogue) -> int:
    try:
        records = _records.decode(body)
    except UNDECODABLE as error:
        raise ConnectionLostError(f"{member.address} sends records that cannot be read: {error}") from error
    new = 0
    for signed in records:
        try:
            new += catalogue.add(signed)
        except RecordError as error:
            who = f"{member.address} ({short(member.publisher)})"
            _log.warning("%s brings a record of %s that is refused: %s", who, short(signed.publisher), error)
            if error.why == "forged":
                raise ConnectionLostError(f"{who} brings a forged record: {error}") from error
    return new


def _bounded(newest: Mapping[str, int]) -> dict[str, int]:
    return dict(list(newest.items())[:_MOST_PUBLISHERS])
