"""What an older library's call is called here: data for notices, for tables in the documentation, for `migrate`.

Each older library has a module `names` with its `TRANSLATIONS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

LIBRARIES: Final = {
    "hops": "hops",
    "hopsworks": "hopsworks",
    "horovod": "horovod",
    "hsfs": "hopsworks",
    "hsml": "hopsworks",
    "maggy": "maggy",
    "petastorm": "petastorm",
    "pydoop": "hops",
    "tensorflowonspark": "tensorflowonspark",
}
"""The modules of others that we stand in for, each as `cargobike.compat.<name>`, and the room that knows its names."""


@dataclass(frozen=True, slots=True)
class Translation:
    """One call of an older library, and what says the same here.

    Attributes:
        old: The full name that scripts use, as in `hops.hdfs.copy_to_hdfs`.
        new: Our own name, in full, as in `cargobike.experiment.grid_search`. Empty if there is none.
        positional: Names of the old call's arguments in order: what was given by position can be named.
        renamed: Arguments that have another name here.
        dropped: Arguments that mean nothing here.
        same: Whether the new name with these arguments is all there is to change. `cargobike migrate` rewrites such
            calls and lists the others.
        accepts: The arguments, by their old names, with which it is so; any if not given. A call with others stays.
        returns: Whether the results are alike too; if not, only a call whose result is not used is rewritten.
        literal: What to write in place of a name that stands for a value, such as `"max"`.
        remark: What else to do, or why there is no such call: one sentence for `migrate` and the documentation.
    """

    old: str
    new: str
    positional: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    same: bool = False
    accepts: frozenset[str] | None = None
    returns: bool = True
    literal: str = ""
    remark: str = ""


def translations_of(library: str) -> tuple[Translation, ...]:
    """Return what is known about the names of one of `LIBRARIES`."""
    names = importlib.import_module(f"cargobike.compat.{LIBRARIES[library]}.names")
    found: tuple[Translation, ...] = names.TRANSLATIONS
    return found


def translation_of(old: str) -> Translation | None:
    """Return what is known about a full name of one of `LIBRARIES`."""
    return next((one for one in translations_of(old.partition(".")[0]) if one.old == old), None)


def as_table(translations: Iterable[Translation]) -> str:
    """Return a table in Markdown, as in the documentation: old call, new call, remark."""
    rows = ["| old call | new call | remark |", "| --- | --- | --- |"]
    for one in translations:
        new = one.new or one.literal
        rows.append(f"| `{one.old}` | {f'`{new}`' if new else '–'} | {one.remark} |")
    return "\n".join(rows)
