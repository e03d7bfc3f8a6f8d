"""How an experiment was set up, kept beside its journal so that it can be taken up again by another process.

Journals are data; this is code, the user's own in the user's own project: it is unpickled only when they resume it.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import cloudpickle
import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.goals import Goals
from cargobike.core.records import Params, Resources, Trial
from cargobike.experiments.scheduling.plan import Plan
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.rules.stop_rule import StopRule
from cargobike.search.spaces.space import Searchspace

FILE = "recipe.pickle"


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was asked for, the optimizer as it was before its first question."""

    optimizer: AbstractOptimizer
    space: Searchspace
    names: tuple[str, ...]
    plan: Plan
    direction: Literal["max", "min"]
    metric: str | None
    goals: Goals
    start_points: Sequence[Params]
    params: dict[str, Any] | None
    resources: Resources
    isolation: Literal["fresh", "reuse"]
    own_directory: bool
    durability: Literal["process", "power"]
    stop_rules: Sequence[StopRule]
    past: tuple[Trial, ...] = ()

    def encode(self) -> bytes | None:
        """Turn into bytes; `None` if somebody's optimizer or rule cannot be: that experiment cannot be resumed."""
        try:
            data: bytes = cloudpickle.dumps({name: getattr(self, name) for name in self.__struct_fields__})
        except Exception:  # noqa: BLE001 - anybody's objects, and no reason not to run the experiment
            return None
        return data

    @staticmethod
    def read(folder: Path) -> Recipe:
        """Read the recipe from an experiment's code folder.

        Raises:
            StoreError: If there is none, or its code cannot be found any more.
        """
        path = folder / FILE
        try:
            return Recipe(**pickle.loads(path.read_bytes()))
        except FileNotFoundError:
            raise StoreError(
                f"There is no recipe in {folder}: the experiment's optimizer could not be kept, or it ended before it "
                "had begun. Launch it anew."
            ) from None
        except Exception as error:
            raise StoreError(f"The recipe {path} cannot be read: {type(error).__name__}: {error}") from error
