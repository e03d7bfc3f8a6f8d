"""Ablation: the same model again and again, each time without one of its parts, to see what each part is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from cargobike.core.errors import SpaceError, nearest
from cargobike.core.records import Params, Suggestion, Trial
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.space import Searchspace
from cargobike.search.spaces.values import NotPlainError, Value, identity, plain, shown

BASELINE = "baseline"
"""What the trials with every part in place are called."""


class Ablation(AbstractOptimizer):
    """Leaves out one component at a time, and repeats all of it with other seeds.

    One round is the baseline, then one trial for each component, then one for each group. All trials of a round
    share a seed, so that they differ in nothing but the component; each round has another one. The space and the
    number of trials follow from the arguments: `experiment.launch` needs neither.

    Args:
        baseline: All parameters of the train function, with every component switched on.
        without: What to change to switch a component off: `{"dropout": 0.0}`. A component that is more than one
            parameter gets a dict: `{"regularisation": {"dropout": 0.0, "weight_decay": 0.0}}`.
        groups: Components to leave out together, such as `[("dropout", "augment")]`.
        repeats: How many rounds; confidence intervals need at least 2.

    Example:
        >>> optimizer = Ablation({"lr": 0.1, "dropout": 0.3}, {"dropout": 0.0}, repeats=2)
        >>> optimizer.preset_num_trials
        4

    Raises:
        SpaceError: If something does not fit together; lists all mistakes.
    """

    name: ClassVar[str] = "ablation"

    def __init__(
        self,
        baseline: Mapping[str, Any],
        without: Mapping[str, Any],
        *,
        groups: Iterable[Sequence[str]] = (),
        repeats: int = 3,
    ) -> None:
        mistakes: list[str] = []
        self.baseline = _read(baseline, "baseline", mistakes)
        self.without = _read_components(without, self.baseline, mistakes)
        self.groups = _read_groups(groups, self.without, mistakes)
        self.repeats = repeats
        if type(repeats) is not int or repeats < 1:
            mistakes.append(f"repeats must be a whole number of at least 1, not {shown(repeats)}")
        if mistakes:
            raise SpaceError("this ablation cannot be run:", mistakes)
        self._variants: list[tuple[str, Params]] = [
            (BASELINE, {}),
            *self.without.items(),
            *((" + ".join(group), _joined(group, self.without)) for group in self.groups),
        ]
        self.preset_num_trials = repeats * len(self._variants)
        self.preset_space = self._own_space()

    def initialize(self) -> None:
        """Draw a seed for each round; raises `SpaceError` if the experiment has a space that something is not in."""
        mistakes = []
        for name, change in self._variants:
            try:
                self.space.validate({**self.baseline, **change})
            except SpaceError as error:
                mistakes += [f"{'' if name == BASELINE else 'without '}{name}: {each}" for each in error.mistakes]
        if mistakes:
            raise SpaceError("an ablation brings its own space, leave yours out; this one lacks some trials:", mistakes)
        self._seeds = [self.rng.getrandbits(32) for _ in range(self.repeats)]
        self._next = 0

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return the next trial of the round, or `None` after the last round."""
        total = self.repeats * len(self._variants)
        if self._next >= (total if self.num_trials is None else min(total, self.num_trials)):
            return None
        repeat, index = divmod(self._next, len(self._variants))
        self._next += 1
        name, change = self._variants[index]
        return Suggestion(
            params={**self.baseline, **change},
            seed=self._seeds[repeat],
            info={"ablation": name, "repeat": repeat, "changed": dict(change)},
        )

    def _own_space(self) -> Searchspace:
        values: dict[str, list[Value]] = {name: [value] for name, value in self.baseline.items()}
        for change in self.without.values():
            for name, value in change.items():
                if identity(value) not in map(identity, values[name]):
                    values[name].append(value)
        return Searchspace(values)


def _read(given: object, what: str, mistakes: list[str]) -> Params:
    if not isinstance(given, Mapping) or not given:
        mistakes.append(f"{what} must be a dict of parameters with at least one entry, not {shown(given)}")
        return {}
    clean: Params = {}
    for name, value in given.items():
        if not isinstance(name, str) or not name:
            mistakes.append(f"{what}: a parameter's name must be a string, not {shown(name)}")
            continue
        try:
            clean[name] = plain(value)
        except NotPlainError as error:
            mistakes.append(f"{what}: {name}: {error}")
    return clean


def _read_components(without: object, baseline: Params, mistakes: list[str]) -> dict[str, Params]:
    if not isinstance(without, Mapping) or not without:
        mistakes.append(f"without must be a dict such as {{'dropout': 0.0}}, not {shown(without)}")
        return {}
    components: dict[str, Params] = {}
    for name, off in without.items():
        if not isinstance(name, str) or not name or name == BASELINE:
            mistakes.append(f"without: {shown(name)} cannot name a component; use other words")
            continue
        change = _read(off if isinstance(off, Mapping) else {name: off}, f"without {name}", mistakes)
        for parameter in change:
            if baseline and parameter not in baseline:
                hint = nearest(parameter, baseline)
                mistakes.append(f"without {name}: {parameter!r} is not a parameter of the baseline.{hint}")
        if change and all(key in baseline and identity(baseline[key]) == identity(change[key]) for key in change):
            mistakes.append(f"without {name}: nothing changes, {shown(change)} is what the baseline has already")
        components[name] = change
    return components


def _read_groups(
    groups: Iterable[Sequence[str]], components: Mapping[str, Params], mistakes: list[str]
) -> list[tuple[str, ...]]:
    found = []
    for group in groups:
        if isinstance(group, str) or len(group) < 2 or len(set(group)) < len(group):
            mistakes.append(f"groups: {shown(group)} must name at least two different components")
            continue
        unknown = [name for name in group if name not in components]
        for name in unknown:
            mistakes.append(f"groups: there is no component {shown(name)}.{nearest(str(name), components)}")
        if not unknown:
            found.append(tuple(group))
    return found


def _joined(group: Iterable[str], components: Mapping[str, Params]) -> Params:
    joined: Params = {}
    for name in group:
        joined |= components[name]
    return joined
