"""One tree of errors, which its module's docstring shows, with fields that survive a pickle."""

from __future__ import annotations

import builtins
import importlib
import pickle
import pkgutil
import re

import pytest

import cargobike
from cargobike import errors
from cargobike.core import errors as tree
from cargobike.core.errors import nearest, nearest_names


def all_errors(base: type[BaseException]) -> set[type[BaseException]]:
    """Return a class and everything below it."""
    return {base}.union(*(all_errors(child) for child in base.__subclasses__()))


def test_every_error_is_in_the_tree_and_public() -> None:
    for module in pkgutil.walk_packages(cargobike.__path__, "cargobike."):
        if re.search(r"core|search|store|experiments\.(asking|driving|results)|parameter_server", module.name):
            importlib.import_module(module.name)
    ours = all_errors(errors.CargobikeError) | all_errors(errors.TrialStopped)
    ours = {error for error in ours if error.__module__.startswith("cargobike.")}
    ours -= {error for error in ours if error.__module__.startswith("cargobike.compat.")}  # named by other libraries
    assert {error.__module__ for error in ours} == {"cargobike.core.errors"}
    assert {error.__name__ for error in ours} == set(errors.__all__)


def test_the_docstring_shows_the_tree() -> None:
    lines = re.findall(r"^    ([│ ├└─]*)(\w+) *(?:\((\w+)\))?", tree.__doc__ or "", re.MULTILINE)
    above: list[type[BaseException]] = []
    for branch, name, built_in in lines:
        error, depth = getattr(errors, name), len(branch) // 4
        above[depth:] = [error]
        if depth:
            assert issubclass(error, above[depth - 1])
        if built_in:
            assert issubclass(error, getattr(builtins, built_in))
    assert {name for _, name, _ in lines} == set(errors.__all__)


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidInputError("wrong", ["this", "that"]),
        errors.NotFoundError("no", wanted=3, nearest=["x"]),
        errors.WaitError("late", missing=["rank 1"]),
        errors.FrameError(),
        errors.ProgramError("failed", exit_code=3),
        errors.MissingLibraryError("install it", name="plotly"),
        errors.TrialFailedError("failed", experiment="e", trial=3, rank=1, host="tower", traceback="T", log_tail="l"),
        errors.ExperimentFailedError("given up", "a result"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_fields_survive_a_pickle(error: errors.CargobikeError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    assert getattr(again, "name", None) == getattr(error, "name", None)


def test_what_is_not_known_is_empty() -> None:
    failed = errors.TrialFailedError("failed")
    assert (failed.experiment, failed.trial, failed.rank, failed.host) == ("", None, None, "")
    assert (failed.traceback, failed.log_tail, failed.result) == ("", "", None)
    assert (errors.NotFoundError("no").wanted, errors.NotFoundError("no").nearest) == ("", ())
    assert errors.WaitError("late").missing == ()


def test_the_nearest_names() -> None:
    assert nearest_names("asah", ["asha", "grid"]) == ["asha"]
    assert nearest_names("de", ["differential_evolution", "grid"]) == ["differential_evolution"]
    assert nearest_names("xyz", ["asha"]) == []
    assert nearest("xyz", ["asha"]) == ""
