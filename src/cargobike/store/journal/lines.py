"""The lines of a journal: how a fact becomes one, how one line follows another, and which lines of a file count.

Each line is what `encode_fact` makes of a fact with three more keys at its end:

    {"fact":"trial-ended", … ,"line":17,"prev":"89abcdef","crc":"01234567"}

`crc` is the CRC-32 of all bytes before `,"crc"`, `prev` the `crc` of the line before, zeros in the first line. So each
line proves by itself that it is whole, and all of them together that none is missing, comes twice, stands elsewhere or
belongs to another journal. `line` says which one it is, for the words of an error.

Journals that were begun by older versions have lines without `line` and `prev`, and lines with them once a newer one
has continued them. If the first line of a journal has them, every line must.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple
from zlib import crc32

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.facts import Fact, encode_fact
from cargobike.core.plain_files import open_plain
from cargobike.core.values.numbers import describe

BLOCK_BYTES: Final = 1 << 20
"""How much of a journal is read at once."""

NO_CRC: Final = b"00000000"
_BEGINNING: Final = b'{"fact":'  # of every line; inside a text its quotes would be escaped
_PREV_KEY: Final = b',"prev":"'
_CRC_KEY: Final = b',"crc":"'
_LAST_BYTES: Final = 128  # more than the three keys need
_CHAINED: Final = re.compile(rb',"line":([0-9]{1,18}),"prev":"[0-9a-f]{8}","crc":"[0-9a-f]{8}"}$')


class Link(NamedTuple):
    """What a line has to follow: the number and the checksum, in eight digits, of the line before it."""

    line: int = 0
    crc: bytes = NO_CRC


def seal(fact: Fact) -> bytes:
    """Encode a fact as a line that stands by itself: JSON object with its checksum, and a newline."""
    if not isinstance(fact, Fact):
        raise InvalidInputError(f"a line of a journal holds a fact, such as Reported(…); {describe(fact)} was given.")
    body = _encode(fact)
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))


def seal_all(facts: Iterable[Fact], link: Link) -> tuple[bytes, Link]:
    """Encode facts as lines of a journal that follow a link; returns them, and what the next one has to follow."""
    line, crc = link
    lines = list[bytes]()
    for fact in facts:
        line += 1
        body = b'%b,"line":%d,"prev":"%b"' % (_encode(fact), line, crc)
        crc = b"%08x" % crc32(body)
        lines += body, _CRC_KEY, crc, b'"}\n'
    return b"".join(lines), Link(line, crc)


def is_intact(line: bytes) -> bool:
    """Tell whether a line (without its newline) carries its right checksum."""
    return line[-18:-10] == _CRC_KEY and line[-10:] == b'%08x"}' % crc32(line[:-18])


def is_chained(line: bytes) -> bool:
    """Tell whether a line (without its newline) says which one it follows."""
    return line[-36:-27] == _PREV_KEY and line[-19:-10] == b'",' + _CRC_KEY[1:]


def number_of(line: bytes) -> int | None:
    """Return the number that a line (without its newline) gives itself."""
    match = _CHAINED.search(line[-_LAST_BYTES:])
    return None if match is None else int(match[1])


def link_at(path: Path, offset: int) -> Link:
    """Return what a line at an offset of a journal has to follow."""
    if not offset:
        return Link()
    with open_plain(path) as file:
        last = _last_line(file, offset)
    line = number_of(last)
    return Link(line_number(path, offset) - 1 if line is None else line, last[-10:-2])


def line_number(path: Path, offset: int) -> int:
    """Return the number of the line that begins at an offset."""
    with open_plain(path) as file:
        return sum(file.read(min(BLOCK_BYTES, offset - at)).count(b"\n") for at in range(0, offset, BLOCK_BYTES)) + 1


def intact_lines(path: Path, offset: int = 0) -> Iterator[tuple[list[bytes], int]]:
    """Yield the whole lines of a journal in large lists, each with the offset that follows it, undecoded.

    Ends before a torn tail. Lines that are damaged count as a torn tail if no whole line follows.

    Raises:
        StoreError: If a whole line follows a damaged one, does not follow the line before it, or the journal is not
            the one in which another reader came to `offset`.
    """
    try:
        file = open_plain(path)
    except OSError as error:
        raise StoreError(f"Cannot read the journal {path}: {error.strerror}.") from error
    with file:
        crc, all_chained = _begin(file, path, offset)
        rest = b""
        while block := file.read(BLOCK_BYTES):
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            if all_chained is None and lines:
                all_chained = is_chained(lines[0])
            good, crc = _count_good(lines, crc, all_chained=bool(all_chained))
            if good:
                offset += sum(map(len, lines[:good])) + good
                yield lines if good == len(lines) else lines[:good], offset
            if good == len(lines):
                continue
            if is_intact(lines[good]):
                raise _out_of_place(path, offset, lines[good], crc)
            if any(map(_ends_intact, lines[good:])) or any(map(_ends_intact, _lines_on(file, rest))):
                raise _broken(
                    path, line_number(path, offset), "damaged (its checksum is wrong), with whole lines after it"
                )
            return


def _encode(fact: Fact) -> bytes:
    """Encode a fact without the brace at its end."""
    try:
        return encode_fact(fact)[:-1]
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(msgspec.to_builtins(fact, enc_hook=str)))[:-1]


def _without_surrogates(value: Any) -> Any:
    """Replace what UTF-8 cannot hold: output of user code may carry any bytes, a journal may not."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(item) for item in value]
    return value


def _begin(file: BinaryIO, path: Path, offset: int) -> tuple[bytes, bool | None]:
    """Go to an offset; returns the checksum before it, and whether all lines must be chained, if that is clear yet."""
    if not offset:
        return NO_CRC, None
    if os.fstat(file.fileno()).st_size < offset:
        raise StoreError(f"Journal {path} is shorter than it was ({offset} bytes read); read it anew.")
    all_chained = is_chained(file.readline().rstrip(b"\n"))
    last = _last_line(file, offset)
    if not last.endswith(b'"}'):
        raise StoreError(f"Journal {path} is not what it was: no line ends at byte {offset}; read it anew.")
    return last[-10:-2], all_chained


def _last_line(file: BinaryIO, offset: int) -> bytes:
    """Return the end of the line before an offset, without its newline, and go there."""
    start = max(0, offset - _LAST_BYTES)
    file.seek(start)
    return file.read(offset - start)[:-1].rpartition(b"\n")[2]


def _count_good(lines: list[bytes], crc: bytes, *, all_chained: bool) -> tuple[int, bytes]:
    """Count the lines that are whole and follow each other, and return the checksum of the last of them."""
    for index, line in enumerate(lines):
        right = b"%08x" % crc32(line[:-18])
        if line[-36:] == b'%b%b",%b%b"}' % (_PREV_KEY, crc, _CRC_KEY[1:], right):
            crc = right  # as nearly all lines are
            continue
        if (line[-27:-19] != crc or line[-36:-27] != _PREV_KEY) and (all_chained or is_chained(line)):
            return index, crc
        if line[-18:-10] != _CRC_KEY or line[-10:-2] != right or line[-2:] != b'"}':
            return index, crc
        crc = right
    return len(lines), crc


def _lines_on(file: BinaryIO, begun: bytes) -> Iterator[bytes]:
    """Yield the rest of the lines of a file, of which the first was begun to be read before."""
    yield begun + file.readline().rstrip(b"\n")
    yield from (line.rstrip(b"\n") for line in file)


def _ends_intact(line: bytes) -> bool:
    """Tell whether a line, or the last of several whose newlines were damaged, carries its right checksum."""
    starts = [0]
    while (start := line.find(_BEGINNING, starts[-1] + 1)) > 0:
        starts.append(start)
    return any(is_intact(line[start:]) for start in starts)


def _out_of_place(path: Path, offset: int, line: bytes, crc_before: bytes) -> StoreError:
    """Say why a whole line does not follow the one before it, as far as the rest of the journal tells."""
    number, claimed = line_number(path, offset), number_of(line)
    with open_plain(path) as file:
        others = [other.rstrip(b"\n") for other in file]
    follows_one_of_these = any(other[-10:-2] == line[-27:-19] for other in others)
    is_fitting_one_below = any(other[-27:-19] == crc_before and is_chained(other) for other in others[number:])
    if claimed is None:
        why = "it has no number, unlike the lines before it: another program or an old version wrote it"
    elif line in others[: number - 1]:
        why = f"it comes twice, and is line {claimed}"
    elif follows_one_of_these:
        why = f"it stands in the wrong place, and is line {claimed}"
    elif is_fitting_one_below or claimed <= number:
        why = f"it belongs to another journal, where it is line {claimed}, and does not follow the line before it"
    else:
        missing = f"line {number} is" if claimed == number + 1 else f"lines {number} to {claimed - 1} are"
        why = f"{missing} missing before it, or it belongs to another journal"
    return _broken(path, number, why)


def _broken(path: Path, number: int, why: str) -> StoreError:
    return StoreError(
        f"{path}, line {number}: {why}. Restore the file from a copy, or keep what precedes: "
        f"head -n {number - 1} journal.jsonl > repaired.jsonl."
    )
