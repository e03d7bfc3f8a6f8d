"""Writes the tables in "Coming from …" that say what an older library's calls are called here."""

from __future__ import annotations

import re
from pathlib import Path

from cargobike.compat.translations import as_table, translations_of

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
TABLE = re.compile(r"(<!-- translations: (\w+) -->\n).*?(<!-- end of translations -->)", re.DOTALL)


def with_tables(page: str) -> str:
    """Return a page with its tables as they should be."""
    return TABLE.sub(lambda found: f"{found[1]}{as_table(translations_of(found[2]))}\n{found[3]}", page)


def pages() -> list[Path]:
    """Return the pages for people who come from an older library."""
    return sorted(GUIDES.glob("coming-from-*.md"))


if __name__ == "__main__":
    for path in pages():
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
