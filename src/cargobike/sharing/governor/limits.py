"""What a user allows: rates in all, for single peers, and by the hour of the day."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta

from cargobike.core.errors import InvalidInputError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "ki": 1024, "mi": 1024**2, "gi": 1024**3}
PERIOD = re.compile(r"(?:(?P<days>[a-z,-]+)\s+)?(?P<begin>\d{1,2}:\d{2})-(?P<end>\d{1,2}:\d{2})")
RATE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmg]i?)?(?P<what>bit/s|bit|b/s|b)?")


def _smaller(first: float | None, second: float | None) -> float | None:
    return second if first is None else first if second is None else min(first, second)


@dataclass(frozen=True, slots=True)
class Hours:
    """A rate for some hours of some days.

    Attributes:
        begin: When it begins, by the local clock.
        end: When it ends; if that is not after `begin`, on the next day.
        days: The days on which it begins, as in `datetime.weekday`; empty for every day.
        send_rate: Bytes a second that may be sent then; 0 pauses, None is no limit.
        receive_rate: The same for what is received.
    """

    begin: time
    end: time
    days: frozenset[int] = frozenset()
    send_rate: float | None = None
    receive_rate: float | None = None

    def hold_at(self, local: datetime) -> bool:
        """Tell whether the hours hold at a moment of local time."""
        now = local.time()
        if self.begin < self.end:
            return self.begin <= now < self.end and self._begin_on(local)
        return (now >= self.begin and self._begin_on(local)) or (
            now < self.end and self._begin_on(local - timedelta(days=1))
        )

    def _begin_on(self, day: datetime) -> bool:
        return not self.days or day.weekday() in self.days


@dataclass(frozen=True, slots=True)
class Rates:
    """What is allowed at one moment, in bytes a second; None is no limit, 0 is a pause."""

    send: float | None = None
    receive: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """All limits of one member.

    Attributes:
        send_rate: Bytes a second that may be sent in all; 0 pauses, None is no limit.
        receive_rate: The same for what is received.
        peers: The most that may be sent to single peers, in bytes a second, by the name that they are attached with.
        hours: Rates for hours of the day. Of all rates that hold at once, the lowest counts.
        gives_way: Whether transfers make room for other traffic; without it they compete like any other connection.
    """

    send_rate: float | None = None
    receive_rate: float | None = None
    peers: Mapping[str, float] = field(default_factory=dict)
    hours: tuple[Hours, ...] = ()
    gives_way: bool = True

    def __post_init__(self) -> None:
        rates = {"send_rate": self.send_rate, "receive_rate": self.receive_rate}
        rates |= {f"the rate of peer {peer!r}": rate for peer, rate in self.peers.items()}
        for number, hours in enumerate(self.hours, start=1):
            rates |= {
                f"send_rate of hours {number}": hours.send_rate,
                f"receive_rate of hours {number}": hours.receive_rate,
            }
        mistakes = [f"{name} is {rate}" for name, rate in rates.items() if rate is not None and not 0 <= rate < 1e15]
        if mistakes:
            raise InvalidInputError(
                "A limit is a number of bytes a second, 0 to pause, or None for no limit:", mistakes
            )

    def at(self, local: datetime) -> Rates:
        """Return what is allowed in all at a moment of local time."""
        rates = Rates(self.send_rate, self.receive_rate)
        for hours in self.hours:
            if hours.hold_at(local):
                rates = Rates(_smaller(rates.send, hours.send_rate), _smaller(rates.receive, hours.receive_rate))
        return rates


def parse_rate(text: str) -> float | None:
    """Read a rate as people write it, and return bytes a second.

    Args:
        text: Such as `500k`, `20MB/s` (bytes), `80Mbit/s` (bits), `0` to pause, `none` for no limit.
    """
    words = text.strip().lower()
    if words in ("none", "unlimited", "off"):
        return None
    match = RATE.fullmatch(words)
    if match is None:
        raise InvalidInputError(f"{text!r} is no rate: write 500k, 20MB/s, 80Mbit/s, 0 to pause, or none for no limit.")
    rate = float(match["number"]) * UNITS[match["unit"] or ""]
    return rate / 8 if (match["what"] or "").startswith("bit") else rate


def parse_hours(text: str) -> Hours:
    """Read hours as people write them: `mon-fri 08:00-18:00 send=2MB/s receive=none`.

    Args:
        text: Days (optional: `sat,sun` or `mon-fri`), begin and end, and `send=` or `receive=` or both.
    """
    head = re.split(r"\s+(?=send=|receive=)", text.strip().lower())
    match = PERIOD.fullmatch(head[0])
    rates = dict(part.split("=", 1) for part in head[1:])
    if match is None or not rates or len(rates) != len(head) - 1:
        raise InvalidInputError(
            f"{text!r} are no hours: write [DAYS] HH:MM-HH:MM send=RATE receive=RATE, days as mon-fri or sat,sun."
        )
    return Hours(
        begin=_clock(match["begin"], text),
        end=_clock(match["end"], text),
        days=_days(match["days"], text),
        send_rate=parse_rate(rates.get("send", "none")),
        receive_rate=parse_rate(rates.get("receive", "none")),
    )


def _clock(text: str, whole: str) -> time:
    hour, minute = (int(part) for part in text.split(":"))
    if (hour, minute) == (24, 0):
        return time(0)
    if hour > 23 or minute > 59:
        raise InvalidInputError(f"{whole!r} are no hours: {text} is not between 00:00 and 24:00.")
    return time(hour, minute)


def _days(text: str | None, whole: str) -> frozenset[int]:
    days: set[int] = set()
    for part in (text or "").split(",") if text else ():
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            raise InvalidInputError(f"{whole!r} are no hours: days are {', '.join(DAYS)}, or a range such as mon-fri.")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        days.update((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    return frozenset(days)
