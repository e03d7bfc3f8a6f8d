"""What changed when an experiment went on in another space, in words for people and as data for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cargobike.core.seen import SpaceChanged
from cargobike.core.values.words import count


def change_in_words(change: SpaceChanged) -> str:
    """Return after how many trials a space changed, and how.

    Example:
        >>> before = [{"name": "lr", "type": "DOUBLE", "low": 0.001, "high": 0.1}]
        >>> after = [{"name": "lr", "type": "DOUBLE", "low": 0.001, "high": 1.0}]
        >>> change_in_words(SpaceChanged(0.0, 5, after, before))
        'after 5 trials: lr 0.001 … 0.1 → 0.001 … 1'
    """
    return f"after {count(change.trials, 'trial')}: {'; '.join(differences(change))}"


def differences(change: SpaceChanged) -> list[str]:
    """Return each parameter that changed: what it was, and what it became."""
    before = {str(one.get("name")): one for one in change.before}
    words = []
    for one in change.space:
        name = str(one.get("name"))
        old = before.get(name)
        if old is None:
            had = f", {change.defaults[name]} in the trials before" if name in change.defaults else ""
            words.append(f"{name} is new: {_parameter(one)}{had}")
        elif old != one:
            words.append(f"{name} {_parameter(old)} → {_parameter(one)}")
    return words or ["what the trials so far had for new parameters"]


def _parameter(one: Mapping[str, Any]) -> str:
    """Return a described parameter in a few words."""
    if "low" in one:
        words = [f"{_number(one['low'])} … {_number(one.get('high'))}"]
    else:
        words = ["[" + ", ".join(str(value) for value in one.get("values", ())) + "]"]
    scale = one.get("scale", "linear")
    words += [scale] if scale != "linear" else []
    words += [f"step {_number(one['step'])}"] if one.get("step") is not None else []
    words += [f"when {name} in {values}" for name, values in dict(one.get("when") or {}).items()]
    words += [f"with {rule}" for rule in one.get("constraints", ())]
    return " ".join(words)


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
