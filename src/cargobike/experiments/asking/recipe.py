"""How an experiment was set up, kept beside its journal so that another process can take it up again.

The recipe is data: the record of what was asked for, and what resolution added. Optimizers and stop rules are described
by name and settings. One that cannot be described so, a user's own or one with objects among its settings, is pickled
into a separate file: the user's code in the user's project, unpickled only when they resume it.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import msgspec
from msgspec.structs import replace

from cargobike.core.asked import Asked
from cargobike.core.errors import CargobikeError, StoreError
from cargobike.core.facts import ExperimentStarted, Whole
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import Curve, Params, Trial, TrialState
from cargobike.core.values.exact import pack_exactly, unpack_exactly
from cargobike.core.values.packed_numbers import Number, pack_number, pack_numbers, unpack_numbers
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.core.version import __version__
from cargobike.experiments.asking.setup import Setup
from cargobike.search.optimizers.listed import Listed
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.registry import is_told_whole, restore_optimizer
from cargobike.search.rules.stop_rule import StopRule
from cargobike.search.spaces.space import Searchspace
from cargobike.search.spaces.values import from_json

RECIPE = "recipe.json"
OBJECTS = "objects.pickle"
PICKLED_RECIPE = "recipe.pickle"
RECIPE_VERSION = 1


class PastTrial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trial of an earlier experiment that the optimizer learned from before its first question."""

    params: Params
    state: TrialState
    value: float | None = None
    metrics: dict[str, Number] = msgspec.field(default_factory=dict)
    curve: list[tuple[Whole, Number]] = msgspec.field(default_factory=list)
    violation: Number = 0.0


class Recipe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is needed to set an experiment up again; see `Setup`.

    `pickled` says which objects are in the other file: `optimizer`, and stop rules by their position.
    """

    version: int
    cargobike: str
    asked: Asked
    names: tuple[str, ...]
    start_points: tuple[Params, ...] = ()
    past: tuple[PastTrial, ...] = ()
    pickled: tuple[str, ...] = ()


def recipe_files(setup: Setup) -> dict[str, bytes | None]:
    """Return the files that hold a setup, by name; the second is `None` if its objects cannot be pickled."""
    objects = _objects_to_pickle(setup)
    recipe = Recipe(
        version=RECIPE_VERSION,
        cargobike=__version__,
        asked=setup.asked.packed(),
        names=setup.names,
        start_points=tuple(map(pack_exactly, setup.start_points)),
        past=tuple(map(_pack, setup.past)),
        pickled=tuple(objects),
    )
    # The recipe last: once it is there, so is all that it refers to.
    return {OBJECTS: _pickle(objects) if objects else None, RECIPE: msgspec.json.encode(recipe, enc_hook=str)}


def read_recipe(folder: Path) -> Setup:
    """Read how an experiment was set up from its code folder, also if an earlier version wrote it.

    Raises:
        StoreError: If there is no recipe, or its code cannot be found any more.
    """
    path = folder / RECIPE
    if not path.exists() and (folder / PICKLED_RECIPE).exists():
        from cargobike.experiments.asking.pickled_recipe import read_pickled_recipe  # noqa: PLC0415 - few are left

        return read_pickled_recipe(folder / PICKLED_RECIPE)
    try:
        recipe = msgspec.json.decode(path.read_bytes(), type=Recipe)
    except FileNotFoundError:
        raise StoreError(
            f"There is no recipe in {folder}: the experiment ended before it had begun, or it repeats another one. "
            "Launch it anew."
        ) from None
    except (OSError, *UNDECODABLE) as error:
        raise StoreError(f"The recipe {path} cannot be read: {error}") from error
    if recipe.version > RECIPE_VERSION:
        raise StoreError(f"The recipe {path} was written by a newer Cargobike {recipe.cargobike}; upgrade this one.")
    objects = _unpickle(folder / OBJECTS) if recipe.pickled else {}
    try:
        return _setup(recipe, objects)
    except CargobikeError as error:
        raise StoreError(f"The recipe {path} cannot be followed: {error}") from error


def asked_for(header: ExperimentStarted, folder: ExperimentFolder) -> Asked:
    """Return what was asked for in an experiment; journals of version 1 hold half of it, the recipe the rest."""
    if header.version > 1:
        return header.asked
    try:
        asked = read_recipe(folder.code).asked
    except CargobikeError:  # an optimizer that could not be kept, or whose module is gone
        return header.asked
    return replace(asked, name=header.name, description=header.description, function=header.function)


def _setup(recipe: Recipe, objects: dict[str, Any]) -> Setup:
    asked = recipe.asked.unpacked()
    space = Searchspace.from_description(asked.search.space or ())
    return Setup(
        asked=asked,
        space=space,
        names=recipe.names,
        optimizer=objects["optimizer"] if "optimizer" in objects else _optimizer(asked),
        stop_rules=_stop_rules(asked, objects),
        start_points=tuple(_in_space(params, space) for params in recipe.start_points),
        past=tuple(_unpack(trial, space) for trial in recipe.past),
    )


def _in_space(params: Params, space: Searchspace) -> Params:
    """Return parameters as the space has them, with tuples where JSON has lists."""
    return space.validate({name: from_json(unpack_exactly(value)) for name, value in params.items()})


def _optimizer(asked: Asked) -> AbstractOptimizer:
    if asked.search.params is not None:
        return Listed([asked.search.params])
    if asked.search.optimizer is None:
        raise StoreError("it names no optimizer.")
    return restore_optimizer(asked.search.optimizer)


def _stop_rules(asked: Asked, objects: dict[str, Any]) -> tuple[StopRule, ...]:
    if not asked.search.stop_rules:
        return ()
    from cargobike.search.rules.stop_rules import restore_stop_rule  # noqa: PLC0415 - most searches have none

    keys = ((_rule_key(number), rule) for number, rule in enumerate(asked.search.stop_rules))
    return tuple(objects[key] if key in objects else restore_stop_rule(rule) for key, rule in keys)


def _objects_to_pickle(setup: Setup) -> dict[str, Any]:
    """Return the objects that their descriptions do not describe completely."""
    search, objects = setup.asked.search, dict[str, Any]()
    if search.params is None and (search.optimizer is None or not is_told_whole(setup.optimizer, search.optimizer)):
        objects["optimizer"] = setup.optimizer
    if setup.stop_rules:
        from cargobike.search.rules.stop_rules import is_told_whole as is_rule_told_whole  # noqa: PLC0415 - as above

        for number, (rule, description) in enumerate(zip(setup.stop_rules, search.stop_rules, strict=True)):
            if not is_rule_told_whole(rule, description):
                objects[_rule_key(number)] = rule
    return objects


def _rule_key(number: int) -> str:
    return f"stop rule {number}"


def _pickle(objects: dict[str, Any]) -> bytes | None:
    try:
        data: bytes = cloudpickle.dumps(objects)
    except Exception:  # noqa: BLE001 - the user's own objects; without them only a resume is impossible
        return None
    return data


def _unpickle(path: Path) -> dict[str, Any]:
    try:
        objects: dict[str, Any] = pickle.loads(path.read_bytes())
    except FileNotFoundError:
        raise StoreError(
            f"There is no {path}: the experiment's optimizer could not be kept, because it cannot be pickled. "
            "Launch it anew."
        ) from None
    except Exception as error:
        raise StoreError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    return objects


def _pack(trial: Trial) -> PastTrial:
    return PastTrial(
        params=pack_exactly(trial.params),
        state=trial.state,
        value=trial.value,
        metrics=pack_numbers(trial.metrics),
        curve=[(step, pack_number(value)) for step, value in trial.curve],
        violation=pack_number(trial.violation),
    )


def _unpack(past: PastTrial, space: Searchspace) -> Trial:
    curve = Curve()
    for step, value in past.curve:
        curve.add(step, float(value))
    return Trial(
        _in_space(past.params, space),
        state=past.state,
        value=past.value,
        metrics=unpack_numbers(past.metrics),
        curve=curve,
        violation=float(past.violation),
    )
