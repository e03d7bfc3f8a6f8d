"""What the index watches of a product: the journals of its things, and how to notice that one has changed."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.kinds import Kind
from cargobike.store.files.things import folders_of

Row = Mapping[Any, Any]


class Watched(ABC):
    """What a reader needs to know of a product's tables to tell whether they are up to date.

    Attributes:
        product: The name of the product.
        version: Is raised with every change of the tables or their content: tables of another version are made anew.
        kind: The kind of thing whose journals they are made from.
        table: The name of the table with one row for each journal.
        compared: Columns of that table that `has_changed` looks at.
    """

    product: ClassVar[str]
    version: ClassVar[int]
    kind: ClassVar[Kind]
    table: ClassVar[str]
    compared: ClassVar[Sequence[str]] = ()

    @property
    def looked_at(self) -> tuple[str, ...]:
        """The columns that `differences` needs."""
        return ("id", "journal_bytes", "journal_mtime_ns", *self.compared)

    def has_changed(self, folder: Path, row: Row) -> bool:
        """Tell whether a thing changed otherwise than by its journal, which was looked at already."""
        return False


def differences(watched: Watched, project: ProjectFolder, rows: Sequence[Row]) -> tuple[list[Path], list[str]]:
    """Find folders whose journals differ from what was read, and ids of rows whose folders are gone."""
    by_id = {row["id"]: row for row in rows}
    changed, present = [], set()
    for folder in folders_of(watched.kind, project.root):
        try:
            stat = (folder / watched.kind.journal).stat()
        except OSError:
            continue
        present.add(folder.name)
        row = by_id.get(folder.name)
        if (
            row is None
            or (stat.st_size, stat.st_mtime_ns) != (row["journal_bytes"], row["journal_mtime_ns"])
            or _has_changed(watched, folder, row)
        ):
            changed.append(folder)
    return changed, [one for one in by_id if one not in present]


def _has_changed(watched: Watched, folder: Path, row: Row) -> bool:
    try:
        return watched.has_changed(folder, row)
    except StoreError:
        return True  # what cannot be looked at becomes the problem of this one when it is read
