"""An experiment that goes on in a changed space: what may change, what is learned from, what is refused."""

from __future__ import annotations

import ast
import contextlib
import inspect
import logging
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cargobike.core.errors import InvalidInputError, SpaceError
from cargobike.core.facts import ExperimentResumed
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Params, TrialState
from cargobike.core.source_code import parse_module
from cargobike.experiments.asking.arguments import SpaceLike
from cargobike.experiments.asking.recipe import read_recipe
from cargobike.experiments.asking.setup import Setup
from cargobike.experiments.reading import read_record
from cargobike.search.optimizers.extended import Extended, fitted
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.spaces.space import Searchspace

log = logging.getLogger(__name__)

_WALKED = ("gridsearch", "listed", "ablation", "repeat")
_INSTEAD = "launch a new experiment, with warm_start={id!r} to learn from this one"


NewSpace = tuple[list[dict[str, Any]], Params]
"""A described space to go on in, and what the trials so far had for parameters that are new in it."""


def in_changed_space(
    setup: Setup,
    folder: ExperimentFolder,
    before: Sequence[ExperimentResumed],
    space: SpaceLike | None,
    defaults: Mapping[str, Any] | None,
) -> tuple[Setup, NewSpace | None]:
    """Return a setup that knows every space of an experiment, and the space that it goes on in, if it is a new one.

    Args:
        setup: How the experiment was set up first.
        folder: Where it is.
        before: How it was taken up before.
        space: The space to go on in, if another one was asked for.
        defaults: What the trials so far had for parameters that are new in it.

    Raises:
        InvalidInputError: If the experiment cannot go on in such a space; lists all reasons.
    """
    if space is None and defaults:
        raise InvalidInputError("defaults were given, but no space; they are for parameters that are new in it.")
    change = None
    if space is not None:
        record = read_record(folder)
        signature = read_signature(folder, record.header.function)
        change = read_change(space, defaults, record, setup.optimizer, signature)
    described = [*(fact.space for fact in before if fact.space is not None), *([change[0]] if change else [])]
    if not described:
        return setup, None
    later = [read_recipe(folder.code).optimizer for _ in described]  # each space has an optimizer of its own
    names = dict.fromkeys([*setup.names, *(str(one["name"]) for each in described for one in each)])
    return replace(setup, optimizer=Extended(setup.optimizer, later), names=tuple(names)), change


def read_signature(folder: ExperimentFolder, function: str) -> inspect.Signature | None:
    """Return what the recorded train function takes, with defaults that are plain values; `None` if that is unclear."""
    try:
        tree = parse_module(textwrap.dedent(folder.function.read_text(encoding="utf-8")))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    name = function.rpartition(":")[2].rpartition(".")[2]
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    if len(found) != 1 or found[0].decorator_list or found[0].args.posonlyargs:
        return None
    given = found[0].args
    positional = [None] * (len(given.args) - len(given.defaults)) + list(given.defaults)
    pairs = [*zip(given.args, positional, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(one.arg, kind, default=_plain_default(default)) for one, default in pairs]
    if given.kwarg is not None:
        parameters.append(inspect.Parameter(given.kwarg.arg, inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _plain_default(node: ast.expr | None) -> Any:
    try:
        return inspect.Parameter.empty if node is None else ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return inspect.Parameter.empty


def read_change(
    space: SpaceLike,
    defaults: Mapping[str, Any] | None,
    record: ExperimentRecord,
    optimizer: AbstractOptimizer,
    signature: inspect.Signature | None = None,
) -> NewSpace | None:
    """Return the space to go on in, `None` if it is not another one; say what becomes of the trials so far.

    A parameter that is new had, in the trials so far, the value that `defaults` says, or else the default of the train
    function.

    Raises:
        InvalidInputError: If the experiment cannot go on in such a space; lists all reasons.
    """
    instead = _INSTEAD.format(id=record.id)
    if record.header.params is not None or not record.header.space or optimizer.name in _WALKED:
        what = "a single run" if record.header.params is not None else f"a search by {optimizer.name!r}"
        raise InvalidInputError(f"{record.id} is {what}, whose trials are fixed from the start; {instead}.")
    new = _read(space)
    old = Searchspace.from_description(record.header.space)
    if new == old and not defaults:
        return None
    added = _compare(old, new, {**_own_defaults(old, new, signature), **(defaults or {})}, signature, instead)
    ended = [t for t in record.trials.values() if t.state in (TrialState.COMPLETED, TrialState.STOPPED)]
    inside = [trial for trial in ended if fitted(trial, new, added) is not None]
    lacking = [name for name in new.names if name not in old.names and name not in added]
    if ended and not inside:
        why = f"they lack {', '.join(lacking)}; say what they had: defaults={{{lacking[0]!r}: …}}" if lacking else ""
        raise InvalidInputError(
            f"None of the {len(ended)} trials that ended lies in the changed space, so there is nothing to go on from"
            f"{': ' + why if why else ''}; otherwise {instead}."
        )
    outside = len(ended) - len(inside)
    log.warning(
        "%s goes on in a changed space, learning from %d of %d trials%s.",
        record.id,
        len(inside),
        len(ended),
        f"; {outside} lie outside of it: they stay in the result, and are not learned from" if outside else "",
    )
    return new.describe(), added


def _read(space: SpaceLike) -> Searchspace:
    from cargobike.search.spaces.formats import as_space  # noqa: PLC0415 - most experiments need no parser of files

    new = as_space(space)
    if not isinstance(new, Searchspace):
        raise InvalidInputError("A list of trials was given as the space to go on in; give a Searchspace, or a file.")
    return new


def _own_defaults(old: Searchspace, new: Searchspace, signature: inspect.Signature | None) -> dict[str, Any]:
    """Return the train function's own defaults of parameters that are new, as far as they lie in the space."""
    found: dict[str, Any] = {}
    for name, parameter in ({} if signature is None else signature.parameters).items():
        if name in new.names and name not in old.names and parameter.default is not inspect.Parameter.empty:
            with contextlib.suppress(SpaceError, ValueError):
                found[name] = new[name].clean(parameter.default)
    return found


def _compare(
    old: Searchspace, new: Searchspace, defaults: dict[str, Any], signature: inspect.Signature | None, instead: str
) -> dict[str, Any]:
    """Return the defaults as the new space has them; refuse what makes trials incomparable, or cannot be called."""
    taken = {} if signature is None else signature.parameters
    takes_any = signature is None or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    mistakes = [
        f"{name}: is not there any more; keep it, with a single value if it should not vary: {name}=[…]"
        for name in old.names
        if name not in new.names
    ]
    mistakes += [
        f"{name}: was {old[name].type} and is {new[name].type} now; {instead}"
        for name in new.names
        if name in old.names and old[name].type != new[name].type
    ]
    mistakes += [
        f"{name}: the recorded train function takes no such argument, only {', '.join(taken)}; {instead}"
        for name in new.names
        if name not in old.names and name not in taken and not takes_any
    ]
    clean: dict[str, Any] = {}
    for name, value in defaults.items():
        if name in old.names or name not in new.names:
            mistakes.append(f"defaults: {name!r} is not a new parameter; all trials so far have their own value of it")
            continue
        try:
            clean[name] = new[name].clean(value)
        except (SpaceError, ValueError) as error:
            mistakes.append(f"defaults: {name}: {error}")
    if mistakes:
        raise InvalidInputError("The experiment cannot go on in this space:", mistakes)
    return clean
