"""Seeding the random generators that a train function is likely to use."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Container
from types import ModuleType


def seed_everything(seed: int, *, skip: Container[str] = ()) -> tuple[str, ...]:
    """Seed Python's `random` and the global generators of NumPy, torch and TensorFlow where they are loaded.

    A library is seeded only if it has been imported already: importing one for its seed alone would cost
    seconds. One that the train function imports later starts as it always does (NumPy and TensorFlow with a
    random state, torch with the same fixed state each time). To seed only what was imported since, pass
    what the first call returned as `skip`. Generators that are objects
    (`numpy.random.default_rng`, `jax.random.key`) are made by the train function, from `trial.seed`.
    `PYTHONHASHSEED` is fixed when the interpreter starts and is not touched.

    Args:
        seed: Any integer; each library gets it folded into the range that it accepts.
        skip: Names of libraries to leave alone.

    Returns:
        The names of the libraries that were seeded.

    Example:
        >>> "random" in seed_everything(7)
        True
    """
    seeded: list[str] = []
    if "random" not in skip:
        random.seed(seed)
        seeded.append("random")
    for name, plant in _PLANTERS.items():
        library = sys.modules.get(name)
        if library is not None and name not in skip:
            plant(library, seed)
            seeded.append(name)
    return tuple(seeded)


def _seed_numpy(numpy: ModuleType, seed: int) -> None:
    numpy.random.seed(seed % 2**32)


def _seed_torch(torch: ModuleType, seed: int) -> None:
    # Covers every device: torch remembers the seed for those that it has not initialized yet.
    torch.manual_seed(seed % 2**63)


def _seed_tensorflow(tensorflow: ModuleType, seed: int) -> None:
    tensorflow.random.set_seed(seed % 2**63)


_PLANTERS: dict[str, Callable[[ModuleType, int], None]] = {
    "numpy": _seed_numpy,
    "torch": _seed_torch,
    "tensorflow": _seed_tensorflow,
}
