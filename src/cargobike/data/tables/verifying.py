"""Reads a table again, and compares every row group with the digest that it was written with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from cargobike.core.errors import StoreError
from cargobike.data.tables.files.digests import digest_of, fingerprint_of
from cargobike.data.tables.table import Table

_THREADS = 4


class Verdict(msgspec.Struct, frozen=True):
    """What reading a table again has shown.

    Attributes:
        rows: Rows that are as they were written.
        groups: Row groups that are.
        problems: What is not: each names a file, and a row group if it can be read.
    """

    rows: int
    groups: int
    problems: list[str]


def verify(table: Table, progress: Callable[[int], None] | None = None) -> Verdict:
    """Read all of a table, and say what is not as it was written.

    Args:
        table: The table.
        progress: Called with the rows of each row group that was read.
    """
    problems: list[str] = []
    rows = groups = 0
    with contextlib.closing(table.source()) as source:
        written = [group.digest for file in table.files for group in file.groups]

        def look(number: int) -> str:
            place = source.groups[number].place
            try:
                found = digest_of(source.read(number))
            except StoreError as error:
                return str(error)
            if found == written[number]:
                return ""
            return f"{place} holds other values than were written."

        with ThreadPoolExecutor(_THREADS, thread_name_prefix="cargobike-verify") as threads:
            for number, problem in enumerate(threads.map(look, range(len(source.groups)))):
                if problem:
                    if problem not in problems:
                        problems.append(problem)
                else:
                    rows, groups = rows + source.groups[number].rows, groups + 1
                if progress is not None:
                    progress(source.groups[number].rows)
    if not problems and fingerprint_of(table.schema, written) != table.fingerprint:
        problems.append(f"The manifest of {table.name}:{table.version} has other digests than its fingerprint.")
    return Verdict(rows, groups, problems)
