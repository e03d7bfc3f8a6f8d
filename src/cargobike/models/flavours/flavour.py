"""What a flavour does: a model becomes files of one folder, and the folder predicts again in another process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cargobike.core.registering.modelling import Predictor


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be known about a folder before it can be loaded; goes into the manifest of a version.

    Attributes:
        flavour: The name of the flavour that wrote it.
        details: What that flavour has to know, as plain data.
        libraries: Modules to import before it is loaded, so that processes can be forked warm.
        runs_code: Whether loading runs code that the folder holds, such as a pickle. A flavour that needs to run code
            refuses a folder for which this is false, so that a manifest cannot lie about it.
    """

    flavour: str
    details: dict[str, Any] = {}
    libraries: tuple[str, ...] = ()
    runs_code: bool = False


@dataclass(frozen=True)
class Given:
    """What a user gave to be saved.

    Attributes:
        model: The model: an object of a library, a function, a class, or the path of a file.
        method: Which method of the model predicts; empty for the usual one.
        factory: What makes the model, for flavours that keep its weights alone.
        example: A few rows; `None` if none were given.
    """

    model: Any
    method: str = ""
    factory: Any = None
    example: list[Any] | None = None


class Flavour(ABC):
    """Saves and loads models of one kind.

    Guarantees: nothing outside the folder is needed but installed libraries; loading is done in another process, often
    one that was forked; what is loaded gives equal answers for a row whatever batch it comes in, as far as the library
    does; loading runs no code of the folder unless `Saved.runs_code` says so; names of files are the flavour's own,
    never taken from `Saved`; a file that is missing or damaged raises `StoreError` with its name.
    """

    def recognises(self, model: Any) -> bool:
        """Tell whether a model is of this kind; asked of flavours that come from other packages."""
        return False

    @abstractmethod
    def save(self, given: Given, folder: Path) -> Saved:
        """Write a model into an empty folder.

        Raises:
            InvalidInputError: If it cannot be saved; says what can be given instead.
        """

    @abstractmethod
    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Return what predicts.

        Raises:
            StoreError: If a file is missing or damaged.
            UntrustedError: If that runs code and `saved` says that it does not.
        """
