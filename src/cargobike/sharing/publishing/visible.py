"""Say what becomes visible to whom before something is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cargobike.core.values.words import count
from cargobike.sharing.publishing.content import Content
from cargobike.sharing.publishing.rows import Rows


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a publisher says about a publication."""

    name: str
    description: str = ""
    license: str = ""
    tags: tuple[str, ...] = ()
    web_seeds: tuple[str, ...] = ()


def describe_visible(
    said: Said, content: Content, rows: Rows, *, paths: Sequence[str], size: int, network: str, members: Path
) -> str:
    """Return what a person reads before agreeing."""
    lines = [
        f"Publish {said.name!r} in the network {network!r}: {count(len(paths), 'file')}, "
        f"{size_words(size)}, from {content.place}.",
        f"Visible to {_whom(network, members)}:",
        f"  - name, description, licence ({said.license or 'none named'}), tags, and this project's key",
        f"  - the paths and sizes of all files, such as {paths[0]}",
    ]
    if rows.columns:
        lines.append(f"  - {count(rows.rows or 0, 'row')} of {count(len(rows.columns), 'column')}, by name and type")
    if rows.sample:
        shown = ", ".join(rows.sample[0])
        lines.append(f"  - the first {count(len(rows.sample), 'row')} as a sample, with their values: {shown[:300]}")
    if said.web_seeds:
        lines.append(f"  - these addresses: {', '.join(said.web_seeds)}")
    lines.append("  - the whole content, to everyone of them who gets it; others may give it on, and a withdrawal")
    lines.append("    does not bring back what was got before")
    lines += [f"Note: {remark}" for remark in (*content.remarks, *filter(None, (rows.problem,)))]
    return "\n".join(lines)


def size_words(size: int) -> str:
    """Write a number of bytes for people.

    Example:
        >>> size_words(999), size_words(1_500_000)
        ('999 bytes', '1.5 MB')
    """
    if size < 1000:
        return count(size, "byte")
    amount, unit = float(size), ""
    for unit in ("kB", "MB", "GB", "TB", "PB"):  # noqa: B007 - the last one is used
        amount /= 1000
        if amount < 999.5:
            break
    return f"{amount:.3g} {unit}"


def _whom(network: str, members: Path) -> str:
    if members.is_file():
        keys = [line for line in members.read_text(encoding="utf-8").splitlines() if line.strip()]
        return f"the {count(len(keys), 'member')} that are listed in {members}"
    return f"every member of {network!r}: all who know its secret, now or later"
