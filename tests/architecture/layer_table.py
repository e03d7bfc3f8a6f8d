"""Writes the tables of rooms and layers in docs/architecture.md: `make layer-table`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS))  # for what it needs, where this is run as a program
PAGE = TESTS.parent / "docs" / "architecture.md"
SOURCE = TESTS.parent / "src" / "cargobike"
BEGIN, END = "<!-- layers: written by `make layer-table` -->", "<!-- end of layers -->"

MEANING = {
    5: ("doors, and what stands at the very top", "everything below"),
    4: ("what calls products", "everything below"),
    3: ("products", "below, never each other"),
    2: ("what products share", "below, never each other"),
    1: ("the kernel", "`core`, never each other"),
    0: ("words that all share", "nothing of ours"),
}
HIDDEN = {"__main__", "former_names"}


def layer_tables() -> str:
    """Return all tables, between their marks, as the law has them."""
    from architecture import layers

    parts = [BEGIN, "| layer | what | rooms | may import |", "| --- | --- | --- | --- |"]
    for layer in sorted(set(layers.LAYERS.values()), reverse=True):
        rooms = [room for room, its in layers.LAYERS.items() if its == layer and room not in HIDDEN]
        names = ", ".join("the package itself" if room == layers.ROOT else f"`{room}`" for room in sorted(rooms))
        what, below = MEANING[layer]
        parts.append(f"| {layer} | {what} | {names} | {below} |")
    parts += [
        "",
        "Besides, these imports point up or sideways and are meant:",
        "",
        "| from | to | because |",
        "| --- | --- | --- |",
    ]
    parts += [
        f"| `{start}` | {'the package itself' if end == layers.ROOT else f'`{end}`'} | {why} |"
        for (start, end), why in layers.WIDENED.items()
    ]
    for room, floors in layers.INNER.items():
        parts += ["", f"Inside `{room}`, from the top down, each may import what stands below it:", ""]
        parts += ["| rooms and files | what they do |", "| --- | --- |"]
        for floor in reversed(floors):
            folders = sorted(name for name in floor if (SOURCE / room / name).is_dir())
            files = sorted(floor - set(folders))
            parts += [f"| `{name}/` | {_job(SOURCE / room / name)} |" for name in folders]
            parts += [f"| {', '.join(f'`{name}.py`' for name in files)} | |"] if files else []
    return "\n".join([*parts, END])


def _job(folder: Path) -> str:
    """Return the first sentence with which a room introduces itself."""
    found = re.match(r'"""(.+?)(?:"""|\n\n|\.(?=\s))', (folder / "__init__.py").read_text(), re.DOTALL)
    return " ".join(found[1].split()).rstrip(".").replace("|", "\\|") if found else ""


def with_tables(page: str) -> str:
    """Return the page with its tables as they should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + layer_tables() + after


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
