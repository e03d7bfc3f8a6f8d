"""What a space file says, and the small steps that all formats share in saying it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cargobike.core.errors import SpaceError, nearest
from cargobike.core.records import Direction, Params
from cargobike.search.spaces.space import Searchspace
from cargobike.search.spaces.values import shown

_DIRECTIONS: dict[str, Direction] = {
    "max": "max",
    "maximize": "max",
    "maximise": "max",
    "min": "min",
    "minimize": "min",
    "minimise": "min",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceFile:
    """A search as a file describes it; what the file leaves open is `None`.

    Attributes:
        space: What may be tried: a space, or a list of sets of parameters.
        num_trials: How many trials to run.
        workers: How many of them at a time.
        direction: `"max"` or `"min"`.
        metric: Which metric to optimize.
    """

    space: Searchspace | list[Params]
    num_trials: int | None = None
    workers: int | None = None
    direction: Direction | None = None
    metric: str | None = None


class Reader:
    """Collects the parts of a space file and the mistakes in them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.mistakes: list[str] = []
        self.specs: dict[str, Any] = {}
        self.constraints: Any = ()

    def section(self, document: Mapping[str, Any], key: str, kind: type) -> Any:
        """Return a part of a document if it has the right type; an absent part is empty."""
        value = document.get(key)
        if value is None:
            return kind()
        if not isinstance(value, kind):
            what = "a list" if kind is list else "a mapping"
            self.mistakes.append(f"{key}: must be {what}, not {shown(value)}")
            return kind()
        return value

    def entry(self, entry: object, where: str, name_key: str, known: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
        """Return a parameter's name and its other keys; the name is empty if the entry is of no use."""
        if not isinstance(entry, Mapping):
            self.mistakes.append(f"{where}: must be a mapping with {', '.join(known)}, not {shown(entry)}")
            return "", {}
        name = entry.get(name_key)
        if not isinstance(name, str) or not name:
            self.mistakes.append(f"{where}: {name_key} is missing or no text: {shown(dict(entry))}")
            return "", {}
        for key in entry:
            if key not in known:
                guess = nearest(str(key), known)
                self.mistakes.append(f"{name}: unknown key {shown(key)}; known are {', '.join(known)}.{guess}")
        if name in self.specs:
            self.mistakes.append(f"{name}: declared twice")
        return name, {key: value for key, value in entry.items() if key != name_key}

    def range_of(self, name: str, keys: Mapping[str, Any], low_key: str, high_key: str) -> list[Any] | None:
        """Return both ends of a range, or `None` if one is missing."""
        missing = [key for key in (low_key, high_key) if keys.get(key) is None]
        self.mistakes.extend(f"{name}: {key} is missing" for key in missing)
        return None if missing else [number_in(keys[low_key]), number_in(keys[high_key])]

    def choice(self, name: str, value: object, choices: Mapping[str, str], default: str) -> str:
        """Return what a foreign word, in any case, means to us."""
        if value is None:
            return default
        words = {word.upper(): word for word in choices}
        word = words.get(str(value).upper())
        if word is None:
            guess = nearest(str(value).upper(), words)
            self.mistakes.append(f"{name}: unknown {shown(value)}; known are {', '.join(choices)}.{guess}")
            return default
        return choices[word]

    def count(self, key: str, value: object) -> int | None:
        """Return a whole number of at least 1, which may be written as text."""
        number = number_in(value)
        if number is None:
            return None
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            self.mistakes.append(f"{key}: must be a whole number of at least 1, not {shown(value)}")
            return None
        return number

    def direction(self, key: str, value: object) -> Direction | None:
        """Return `"max"` or `"min"`."""
        if value is None:
            return None
        found = _DIRECTIONS.get(str(value).lower())
        if found is None and str(value).upper() != "GOAL_TYPE_UNSPECIFIED":
            self.mistakes.append(f"{key}: must be maximize or minimize, not {shown(value)}")
        return found

    def text(self, key: str, value: object) -> str | None:
        """Return a piece of text."""
        if value is None or isinstance(value, str):
            return value
        self.mistakes.append(f"{key}: must be text, not {shown(value)}")
        return None

    def finish(self, **settings: Any) -> SpaceFile:
        """Return the whole, or raise a `SpaceError` with every mistake of the file."""
        space = Searchspace()
        try:
            space = Searchspace(self.specs, constraints=self.constraints)
        except SpaceError as error:
            self.mistakes.extend(error.mistakes or [str(error)])
        if not self.specs and not self.mistakes:
            self.mistakes.append("it names no parameter")
        if self.mistakes:
            raise SpaceError(f"{self.source}: this search space cannot be used:", self.mistakes)
        return SpaceFile(space=space, **settings)


def number_in(value: object) -> object:
    """Return the number that a text spells; everything else stays as it is."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
