"""Maggy's loaders: a share for each rank of what lies in Parquet files, or of a dataset of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cargobike.compat.noticing import notice
from cargobike.core.errors import MissingLibraryError
from cargobike.core.registering.lazy import load

__all__ = ["MaggyDataLoader", "MaggyPetastormDataLoader"]


class MaggyPetastormDataLoader:
    """Batches of this rank's share of a Parquet dataset, as dicts of tensors; it has a length, too.

    Args:
        dataset: A path, glob, folder or address.
        batch_size: How many rows a batch has.
        transform_spec: A function that makes something of each batch, which is a dict of NumPy arrays.
    """

    def __init__(
        self, dataset: str, batch_size: int = 1, transform_spec: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        notice("maggy.core.patching.MaggyPetastormDataLoader")
        try:
            loader = load("cargobike.data:Loader")
        except ModuleNotFoundError as error:
            raise MissingLibraryError(
                f"Parquet files are read with {error.name}, which is not installed here: pip install 'cargobike[data]'",
                name=error.name,
            ) from error
        form = "torch" if transform_spec is None else "numpy"
        self._loader = loader(dataset, batch_size, to=form, transform=transform_spec, last="pad")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)


def MaggyDataLoader(dataset: Any, batch_size: int = 1, **options: Any) -> Any:
    """Return a loader of torch with this rank's share of a dataset; `cargobike.torch.prepare(loader=…)`.

    Args:
        dataset: A dataset of torch.
        batch_size: How many samples a batch has.
        **options: Those of torch's `DataLoader`, which are kept.
    """
    notice("maggy.core.patching.MaggyDataLoader")
    loader = load("torch.utils.data:DataLoader")(dataset, batch_size, **options)
    return load("cargobike.torch:prepare")(loader=loader).loader
