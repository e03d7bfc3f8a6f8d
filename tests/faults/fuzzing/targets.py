"""All parsers that read what others wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from faults.fuzzing.data_targets import data_targets
from faults.fuzzing.file_targets import file_targets
from faults.fuzzing.message_targets import message_targets
from faults.fuzzing.petastorm_targets import petastorm_targets
from faults.fuzzing.sharing_targets import sharing_targets
from faults.fuzzing.sharing_wire_targets import sharing_wire_targets
from faults.fuzzing.space_targets import space_targets
from faults.fuzzing.table_targets import table_targets
from faults.fuzzing.target import Target as Target
from faults.fuzzing.web_target import web_target


@contextmanager
def all_targets(folder: Path) -> Iterator[dict[str, Target]]:
    """Yield the targets by name, with room for their files in a folder."""
    with ExitStack() as exits:
        targets = [
            *message_targets(),
            *space_targets(folder / "spaces"),
            *file_targets(folder / "files"),
            *data_targets(folder / "data"),
            *table_targets(folder / "tables"),
            *petastorm_targets(),
            *exits.enter_context(sharing_targets(folder / "sharing")),
            *exits.enter_context(sharing_wire_targets(folder / "sharing-wire")),
            exits.enter_context(web_target(folder / "web")),
        ]
        yield {target.name: target for target in targets}
