"""Maggy's `AblationStudy`: what to leave out of a model and of its data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from cargobike.core.errors import InvalidInputError

__all__ = ["AblationStudy"]


class AblationStudy:
    """What to leave out, one thing at a time: features, layers, groups of layers; and other models to try beside.

    Args:
        training_dataset_name: A training dataset of the feature store; empty if there is a generator of your own.
        training_dataset_version: Its version, the newest if left out.
        label_name: Which of its columns is the label.
        dataset_generator: A function of the number of epochs and the batch size that makes the data instead.
    """

    def __init__(
        self,
        training_dataset_name: str = "",
        training_dataset_version: int | None = None,
        label_name: str = "",
        dataset_generator: Callable[..., Any] | None = None,
        **others: Any,
    ) -> None:
        if others:
            raise InvalidInputError(f"AblationStudy has no argument {', '.join(map(repr, others))}.")
        self.features = Features()
        self.model = Model()
        self.hops_training_dataset_name = training_dataset_name
        self.hops_training_dataset_version = training_dataset_version
        self.label_name = label_name
        self.custom_dataset_generator = dataset_generator

    def set_dataset_generator(self, dataset_generator: Callable[..., Any]) -> None:
        """Make the data by a function of your own."""
        self.custom_dataset_generator = dataset_generator

    def to_dict(self) -> dict[str, Any]:
        """Return what is to be left out, as data."""
        return {
            "training_dataset_name": self.hops_training_dataset_name,
            "training_dataset_version": self.hops_training_dataset_version,
            "label_name": self.label_name,
            "included_features": list(self.features.included_features),
            "included_layers": list(self.model.layers.included_layers),
            "included_groups": [sorted(group) for group in self.model.layers.included_groups],
            "custom_models": [name for _, name in self.model.custom_model_generators],
            "custom_dataset_generator": bool(self.custom_dataset_generator),
        }


class Features:
    """The features to leave out."""

    def __init__(self) -> None:
        self.included_features: list[str] = []

    def include(self, *args: Any) -> None:
        """Leave out these, one at a time; names or lists of names."""
        for name in _names("features.include()", args):
            if name not in self.included_features:
                self.included_features.append(name)

    def exclude(self, *args: Any) -> None:
        """Do not leave out these after all."""
        for name in _names("features.exclude()", args):
            if name in self.included_features:
                self.included_features.remove(name)

    def list_all(self) -> None:
        """Print the features that are left out."""
        _print(self.included_features)


class Model:
    """The model that parts are left out of, and others to train beside it."""

    def __init__(self) -> None:
        self.layers = Layers()
        self.base_model_generator: Callable[[], Any] | None = None
        self.custom_model_generators: list[tuple[Callable[[], Any], str]] = []

    def set_base_model_generator(self, base_model_generator: Callable[[], Any]) -> None:
        """Make the model by this function."""
        self.base_model_generator = base_model_generator

    def add_custom_model_generator(self, custom_model_generator: Callable[[], Any], model_identifier: str) -> None:
        """Train another model, too.

        Args:
            custom_model_generator: Makes it.
            model_identifier: What it is called in the result.
        """
        self.custom_model_generators.append((custom_model_generator, model_identifier))


class Layers:
    """The layers to leave out; the first and the last one of a model stay."""

    def __init__(self) -> None:
        self.included_layers: list[str] = []
        self.included_groups: list[frozenset[str]] = []

    def include(self, *args: Any) -> None:
        """Leave out these, one at a time; names or lists of names."""
        for name in _names("layers.include()", args):
            if name not in self.included_layers:
                self.included_layers.append(name)

    def exclude(self, *args: Any) -> None:
        """Do not leave out these after all."""
        for name in _names("layers.exclude()", args):
            if name in self.included_layers:
                self.included_layers.remove(name)

    def include_groups(self, *args: Any, prefix: str | None = None) -> None:
        """Leave out several layers together: each list is a group, and so are all with a prefix in their names."""
        for group in _groups("layers.include_groups()", args, prefix):
            if group not in self.included_groups:
                self.included_groups.append(group)

    def exclude_groups(self, *args: Any, prefix: str | None = None) -> None:
        """Do not leave out these groups after all."""
        for group in _groups("layers.exclude_groups()", args, prefix):
            if group in self.included_groups:
                self.included_groups.remove(group)

    def print_all(self) -> None:
        """Print the layers that are left out alone."""
        _print(self.included_layers or ["There are no single layers in this ablation study configuration."])

    def print_all_groups(self) -> None:
        """Print the groups that are left out."""
        described = [
            f"Layer group {sorted(group)}" if len(group) > 1 else f'All layers prefixed "{next(iter(group))}"'
            for group in self.included_groups
        ]
        _print(described or ["There are no layer groups in this ablation study configuration."])


def _names(owner: str, given: Iterable[Any]) -> list[str]:
    names = [name for one in given for name in (one if isinstance(one, list) else [one])]
    for name in names:
        if not isinstance(name, str):
            raise InvalidInputError(
                f"{owner} only accepts strings or lists of strings, but it received {name!r} ({type(name).__name__})."
            )
    return names


def _groups(owner: str, given: Iterable[Any], prefix: object) -> list[frozenset[str]]:
    groups = []
    if prefix is not None:
        if not isinstance(prefix, str) or not prefix:
            raise InvalidInputError(f"{owner}: prefix must be a str with at least one character, not {prefix!r}.")
        groups.append(frozenset([prefix]))
    for group in given:
        if not isinstance(group, list) or len(set(group)) < 2:
            raise InvalidInputError(
                f"{owner} takes a prefix, or lists with more than one element, not {group!r}; a single layer is left "
                "out with layers.include()."
            )
        groups.append(frozenset(_names(owner, [group])))
    return groups


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
