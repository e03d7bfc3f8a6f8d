"""Finds the features of many Examples at once, by NumPy: one step for the next feature of all records.

It knows only the form in which programs write them. A record in another form that protobuf allows, or a broken one, is
said to be odd, and is for the parser of single ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

PADDING = bytes(16)
"""Stands behind the last record, so that no look ahead leaves the buffer."""

_FIRST, _SECOND = 0x0A, 0x12  # the tags of fields 1 and 2 that hold a length


class Found(NamedTuple):
    """Where the list of one feature lies in each record; kind 0 where the record has none."""

    kinds: npt.NDArray[np.uint8]
    begins: Places
    ends: Places


def find_in_all(data: Bytes, starts: Places, lengths: Places, names: Sequence[str]) -> tuple[dict[str, Found], Flags]:
    """Return where features lie, and which records are odd.

    Args:
        data: A buffer that ends with `PADDING`.
        starts: Where each record begins.
        lengths: How long it is.
        names: The features that may occur; a record with another one is odd.
    """
    count = len(starts)
    found = {
        name: Found(np.zeros(count, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64)) for name in names
    }
    keys = {name.encode(): feature for name, feature in found.items()}
    ends = starts + lengths
    odd = np.zeros(count, bool)
    place, size, fine = _field(data, starts, ends, _FIRST)
    odd |= ~(fine & (place + size == ends)) & (lengths > 0)
    rows = np.flatnonzero(~odd & (place < ends) & (lengths > 0))
    places = place[rows]
    while len(rows):
        limits = ends[rows]
        entry, size, fine = _field(data, places, limits, _FIRST)
        after = entry + size
        key, key_size, is_key = _field(data, entry, np.minimum(after, limits), _FIRST)
        value, value_size, is_value = _field(data, key + key_size, np.minimum(after, limits), _SECOND)
        tags = data[np.minimum(value, len(data) - 1)]
        kinds = tags >> 3
        body, body_size, is_list = _field(data, value, np.minimum(after, limits), None)
        fine &= is_key & is_value & is_list & (tags & 7 == 2) & (kinds >= 1) & (kinds <= 3)
        fine &= (after <= limits) & (value + value_size == after) & (body + body_size == after)
        odd[rows[~fine]] = True
        good = np.flatnonzero(fine)
        for names_alike, name in _by_key(data, key[good], key_size[good]):
            chosen = good[names_alike]
            feature = keys.get(name)
            if feature is None:
                odd[rows[chosen]] = True
                continue
            feature.kinds[rows[chosen]] = kinds[chosen]
            feature.begins[rows[chosen]] = body[chosen]
            feature.ends[rows[chosen]] = after[chosen]
        onward = fine & (after < limits)
        rows, places = rows[onward], after[onward]
        still = ~odd[rows]
        rows, places = rows[still], places[still]
    return found, odd


def _by_key(data: Bytes, begins: Places, sizes: Places) -> list[tuple[Places, bytes]]:
    """Return the rows that have the same key, and the key."""
    groups = []
    waiting = np.arange(len(begins))
    while len(waiting):
        first = int(waiting[0])
        key = data[begins[first] : begins[first] + sizes[first]]
        alike = sizes[waiting] == len(key)
        for offset, byte in enumerate(key.tolist()):
            alike &= data[np.minimum(begins[waiting] + offset, len(data) - 1)] == byte
        groups.append((waiting[alike], key.tobytes()))
        waiting = waiting[~alike]
    return groups


def _field(data: Bytes, places: Places, limits: Places, tag: int | None) -> tuple[Places, Places, Flags]:
    """Return where the value of a field begins, how long it is, and whether the field is the wanted one."""
    last = len(data) - 1
    fine = places < limits
    if tag is not None:
        fine &= data[np.minimum(places, last)] == tag
    place = np.minimum(places + 1, last)
    byte = data[place]
    sizes = (byte & 0x7F).astype(np.int64)
    place = place + 1
    longer = np.flatnonzero(byte >= 0x80)
    for step in range(1, 5):
        if not len(longer):
            break
        byte = data[np.minimum(place[longer], last)]
        sizes[longer] |= (byte & 0x7F).astype(np.int64) << (7 * step)
        place[longer] += 1
        longer = longer[byte >= 0x80]
    fine[longer] = False
    return place, sizes, fine & (place + sizes <= limits)


def bodies(data: Bytes, found: Found) -> tuple[Places, Places, Flags]:
    """Return where the values of each list begin and end if they lie in one piece, and where they do not."""
    filled = found.ends > found.begins
    place, size, fine = _field(data, found.begins, found.ends, _FIRST)
    odd = filled & ~(fine & (place + size == found.ends))
    usable = filled & ~odd
    return np.where(usable, place, 0), np.where(usable, place + size, 0), odd


def joined(data: memoryview, begins: Places, ends: Places) -> bytes:
    """Return what lies in many stretches, one behind the other."""
    longest = int((ends - begins).max(initial=0))
    if longest <= len(PADDING):  # then one step for the next byte of all is quicker
        places = begins[:, None] + np.arange(longest)
        return bytes(np.frombuffer(data, np.uint8)[places][places < ends[:, None]])
    return b"".join([data[low:high] for low, high in zip(begins.tolist(), ends.tolist(), strict=True)])


def integers(packed: bytes, sizes: Places) -> tuple[npt.NDArray[np.int64], Places, Flags]:
    """Return the numbers in varints of many rows, how many each row has, and which rows hold something else.

    Args:
        packed: The varints of all rows.
        sizes: How many bytes of them each row has.
    """
    data = np.frombuffer(packed, np.uint8)
    is_end = data < 0x80
    ends = np.flatnonzero(is_end) + 1
    lengths = np.diff(ends, prepend=0)
    limits = np.cumsum(sizes)
    begins = limits - sizes
    counted = np.concatenate(([0], np.cumsum(is_end)))
    counts = counted[limits] - counted[begins]
    odd = (sizes > 0) & ~is_end[np.maximum(limits - 1, 0)] if len(data) else np.zeros(len(sizes), bool)
    too_long = np.flatnonzero(lengths > 10)
    odd[np.searchsorted(limits, ends[too_long] - 1, "right")] = True
    values = np.zeros(len(ends), np.uint64)
    begin = ends - lengths
    for step in range(min(10, int(lengths.max(initial=0)))):
        longer = slice(None) if step == 0 else np.flatnonzero(lengths > step)
        bits = data[begin[longer] + step].astype(np.uint64) & np.uint64(0x7F)
        values[longer] |= bits << np.uint64(7 * step)
    return values.view(np.int64), counts, odd
