"""Every name of starting and of elastic training that scripts use is there under the same path."""

from __future__ import annotations

import importlib
import inspect

import pytest

import cargobike.compat.horovod as horovod
from cargobike.compat.horovod.names_run import RUN
from cargobike.compat.horovod.runner import run
from cargobike.compat.translations import Translation


def found(old: str) -> object:
    """Return what an older name means here: the longest path that is a module, then attributes."""
    parts = old.split(".")
    for length in range(len(parts), 0, -1):
        try:
            here: object = importlib.import_module(".".join(["cargobike.compat", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            here = getattr(here, name)
        return here
    raise LookupError(old)


@pytest.mark.parametrize("translation", RUN, ids=lambda one: one.old)
def test_each_name_is_there_and_takes_the_arguments_that_it_took(translation: Translation) -> None:
    here = found(translation.old)
    assert callable(here)
    names = list(inspect.signature(here).parameters)
    assert names[: len(translation.positional)] == list(translation.positional)


def test_the_function_has_both_of_its_names() -> None:
    assert horovod.run is run
