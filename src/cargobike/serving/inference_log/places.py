"""Where the files of an inference log lie, and what their names tell: a window of time is found without opening any.

```
deployments/<name>/log/<date>/<first>-<last>-v<version>-<writer>-<number>.parquet
deployments/<name>/log/<date>/merged/<first>-<last>-v<version>-<token>.parquet     files that stand for several others
deployments/<name>/log/<date>/merges/<number>.json                                 which do, created only if absent
```

All times are UTC; `first` and `last` are times of that day, to the microsecond, and the requests of a file lie between.
Each process that writes draws a name of its own and numbers its files, so that a reader can tell which it has read.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from cargobike.core.errors import InvalidInputError
from cargobike.store.files.storage import Storage

DEPLOYMENTS: Final = "deployments"
MERGED: Final = "merged/"
MERGES: Final = "merges"
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_FILE: Final = re.compile(
    r"(?:merged/)?(\d{12})-(\d{12})-v(\d{1,9})-([0-9a-f]{8}(?:[0-9a-f]{4})?)(?:-(\d{1,12}))?\.parquet"
)
_MERGE: Final = re.compile(rf"{MERGES}/(\d{{1,9}})\.json")
_MOST_DAYS: Final = 31


class LogFile(NamedTuple):
    """A file of the log; `name` is its path in the folder of its day, `writer` the process that wrote it.

    Files of earlier versions of Cargobike, and those that stand for others, have a name of their own instead of that of
    a writer, and the number 0.
    """

    day: date
    name: str
    first: datetime
    last: datetime
    version: int
    size: int
    writer: str
    number: int


class Day(NamedTuple):
    """What lies in the folder of a day: files with requests, and the numbers of the merges."""

    day: date
    files: tuple[LogFile, ...]
    merges: tuple[int, ...]


def log_folder(deployment: str) -> str:
    """Return the folder of a deployment's log.

    Raises:
        InvalidInputError: If that can be no name of a deployment.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", deployment):
        raise InvalidInputError(
            f"{deployment!r} was given as the name of a deployment; names have letters, digits, '.', '_' and '-'."
        )
    return f"{DEPLOYMENTS}/{deployment}/log"


def new_writer() -> str:
    """Return a name for a process that writes files, or for a file that stands for others."""
    return secrets.token_hex(6)


def file_name(first_us: int, last_us: int, version: int, writer: str, number: int = 0) -> str:
    """Return the name of a file with the requests of a stretch of one day.

    Args:
        first_us: When the first request came, in microseconds since 1970.
        last_us: When the last one came.
        version: The version of the model that answered them.
        writer: The process that writes it, as `new_writer` named it.
        number: Which of its files that is, from 1; 0 for a file that stands for others.
    """
    last = f"-{number}" if number else ""
    return f"{_clock(first_us)}-{_clock(last_us)}-v{version}-{writer}{last}.parquet"


def day_of(at_us: int) -> date:
    """Return the day, in UTC, of a time in microseconds since 1970."""
    return _moment(at_us).date()


def list_days(storage: Storage, folder: str, since: datetime | None, until: datetime | None) -> Iterator[Day]:
    """Yield what lies in the folders of the days that a stretch of time touches, the earliest first."""
    last = (until or datetime.now(UTC) + timedelta(days=1)).date()
    if since is not None and (last - since.date()).days < _MOST_DAYS:
        for number in range((last - since.date()).days + 1):
            day = since.date() + timedelta(days=number)
            place = f"{folder}/{day}/"
            entries = [(entry.path.removeprefix(place), entry.size) for entry in storage.list(place[:-1], deep=True)]
            if entries:
                yield _day(day, entries)
        return
    days: dict[str, list[tuple[str, int]]] = {}
    for entry in storage.list(folder, deep=True):
        name, _, rest = entry.path.removeprefix(f"{folder}/").partition("/")
        days.setdefault(name, []).append((rest, entry.size))
    for name in sorted(filter(_DAY.fullmatch, days)):
        day = date.fromisoformat(name)
        if (since is None or day >= since.date()) and day <= last:
            yield _day(day, days[name])


def _day(day: date, entries: Iterable[tuple[str, int]]) -> Day:
    files, merges = [], []
    for name, size in entries:
        if match := _FILE.fullmatch(name):
            first, last = (_on(day, text) for text in match.group(1, 2))
            files.append(LogFile(day, name, first, last, int(match[3]), size, match[4], int(match[5] or 0)))
        elif match := _MERGE.fullmatch(name):
            merges.append(int(match[1]))
    return Day(day, tuple(sorted(files, key=lambda file: (file.first, file.name))), tuple(sorted(merges)))


def _moment(at_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)


def _clock(at_us: int) -> str:
    return _moment(at_us).strftime("%H%M%S%f")


def _on(day: date, clock: str) -> datetime:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    hours, minutes, seconds, fraction = (int(clock[start:end]) for start, end in ((0, 2), (2, 4), (4, 6), (6, 12)))
    return midnight + timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=fraction)
