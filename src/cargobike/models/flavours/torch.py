"""Modules of torch: weights as safetensors beside what makes the module, or the module whole."""

from __future__ import annotations

import copy
import functools
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import load_file, save_model

from cargobike.core.errors import InvalidInputError, StoreError, UntrustedError, nearest
from cargobike.core.registering.modelling import Predictor
from cargobike.core.signatures import Datatype
from cargobike.models.flavours.answers import answers_of, named
from cargobike.models.flavours.files import reading
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.pickling import announced, read_pickle, write_pickle
from cargobike.models.flavours.rows import stack

_WEIGHTS: Final = "weights.safetensors"
_FACTORY: Final = "factory.pkl"
_MODULE: Final = "module.pkl"
_TORCH_FILE: Final = "module.pth"
"""What `torch.save` wrote; only models that were imported are kept so."""
_PLAIN: Final = (str, int, float, bool, type(None))


class TorchFlavour(Flavour):
    """Keeps the weights of a module and its factory; without a factory the whole module, as a pickle."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Write the module."""
        module = given.model
        details: dict[str, Any] = {"method": given.method}
        if isinstance(module, torch.jit.ScriptModule):
            raise InvalidInputError(
                "A scripted module was given, and torch has deprecated those; give torch.export.export(module, …), or "
                "the module itself."
            )
        if given.factory is None:
            kept = {"kept_as": "module"}
            libraries = write_pickle(_on_cpu(module), folder / _MODULE, type(module).__name__)
            return Saved(flavour="torch", details={**details, **kept}, libraries=_with_torch(libraries), runs_code=True)
        factory, args, kwargs = _factory(given.factory)
        save_model(module, str(folder / _WEIGHTS))
        if isinstance(factory, str):
            details |= {"kept_as": "weights", "factory": factory, "args": args, "kwargs": kwargs}
            libraries, runs_code = (factory.partition(":")[0],), not _is_module_class(factory)
        else:
            details |= {"kept_as": "weights", "factory": ""}
            pickled = functools.partial(factory, *args, **kwargs)
            libraries, runs_code = write_pickle(pickled, folder / _FACTORY, "factory"), True
        saved = Saved(flavour="torch", details=details, libraries=_with_torch(libraries), runs_code=runs_code)
        _check_fits(saved, folder, module)
        return saved

    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Make the module, and read its weights."""
        return TorchPredictor(_load(saved, folder), saved.details.get("method", ""))


class TorchPredictor:
    """Predicts with a module, for batches of any size, without remembering anything for gradients."""

    floats: Datatype = "FP32"

    def __init__(self, module: Any, method: str = "") -> None:
        module.eval()
        if method.startswith("_") or not callable(getattr(module, method or "forward", None)):
            raise StoreError(f"The model has no method {method!r}.")
        self._predict: Callable[..., Any] = getattr(module, method) if method else module
        first = next(module.parameters(), None)
        self._floats = str(first.dtype).removeprefix("torch.") if first is not None else "float32"
        self._floats = self._floats if self._floats in ("float64", "float16") else "float32"
        self._device = first.device if first is not None else torch.device("cpu")
        takes_whole = any(isinstance(part, torch.nn.Embedding | torch.nn.EmbeddingBag) for part in module.modules())
        self._whole_as_floats = not takes_whole and first is not None

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return one plain answer for each row."""
        stacked = stack(rows, self._floats, whole_as_floats=self._whole_as_floats)
        with torch.inference_mode():
            if isinstance(stacked, dict):
                result = self._predict(**{name: self._tensor(column) for name, column in stacked.items()})
            else:
                result = self._predict(self._tensor(stacked))
        return answers_of(named(result), len(rows))

    def _tensor(self, array: Any) -> Any:
        return torch.from_numpy(array).to(self._device)


def _load(saved: Saved, folder: Path) -> Any:
    if saved.details.get("kept_as") == "file":
        module = _read_file(folder / _TORCH_FILE, saved)
    elif saved.details.get("kept_as") != "weights":
        module = read_pickle(folder / _MODULE, saved)
    else:
        name = saved.details.get("factory", "")
        module = _checked(_made(name, saved) if name else read_pickle(folder / _FACTORY, saved)())
        _read_weights(module, folder / _WEIGHTS)
    return _checked(module)


def _checked(module: Any) -> Any:
    if not isinstance(module, torch.nn.Module):
        raise StoreError(f"A {type(module).__name__} was found instead of a torch.nn.Module.")
    return module


def _made(name: str, saved: Saved) -> Any:
    """Make a module by a name that is imported; anything but a class of modules must have been announced as code."""
    thing = _imported(name)
    if not saved.runs_code and not _is_class(thing):
        raise UntrustedError(
            f"The factory {name} of this model is no class of modules: calling it runs code, but the description of "
            "this model says that loading runs none. Do not load it unless you know who wrote it."
        )
    return thing(*saved.details.get("args", ()), **saved.details.get("kwargs", {}))


def _read_file(path: Path, saved: Saved) -> Any:
    announced(path, saved)
    with reading(path):
        return torch.load(str(path), map_location="cpu", weights_only=False)


def _read_weights(module: Any, path: Path) -> None:
    with reading(path):
        weights = load_file(str(path))
    try:
        lacking, unexpected = module.load_state_dict(weights, strict=False)
    except RuntimeError as error:  # of other shapes
        raise StoreError(f"The weights in {path} do not fit what the factory makes: {error}") from error
    shared = {name for names in _shared(module) for name in names}
    lacking = [name for name in lacking if name not in shared]
    if lacking or unexpected:
        raise StoreError(
            f"The weights in {path} do not fit what the factory makes.\n"
            f"  - missing in the file: {', '.join(lacking[:5]) or '-'}\n  - unknown to the module: "
            f"{', '.join(unexpected[:5]) or '-'}"
        )


def _shared(module: Any) -> list[list[str]]:
    """Return names of weights that are one and the same tensor: a file holds each once."""
    names: dict[int, list[str]] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        names.setdefault(tensor.data_ptr(), []).append(name)
    return [same for same in names.values() if len(same) > 1]


def _factory(given: Any) -> tuple[Any, list[Any], dict[str, Any]]:
    """Return a factory and its arguments: a function, a name, either with a dict of arguments, or a partial."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping):
        given, kwargs = given[0], dict(given[1])
    if isinstance(given, functools.partial):
        args, kwargs, given = list(given.args), {**given.keywords, **kwargs}, given.func
    if isinstance(given, str):
        _imported(given)
        unfit = [name for name, value in kwargs.items() if not _is_plain(value)]
        if unfit:
            raise InvalidInputError(
                f"Arguments of the factory {given!r} must be plain data (texts, numbers, lists, dicts): "
                f"{', '.join(unfit)}. Or give the factory itself instead of its name."
            )
    elif not callable(given):
        raise InvalidInputError(
            f"factory={given!r} cannot be called; give what makes the module: a class or function, its name as "
            "'package.module:name', either with arguments as (factory, {{'width': 64}}), or a functools.partial."
        )
    return given, args, kwargs


def _imported(name: str) -> Any:
    where, _, what = name.partition(":")
    if not what:
        raise InvalidInputError(f"factory={name!r} is no name of a factory; write it as 'package.module:name'.")
    try:
        thing: Any = importlib.import_module(where)
    except ImportError as error:
        raise InvalidInputError(f"factory={name!r} cannot be imported here: {error}.") from error
    for part in what.split("."):
        if not hasattr(thing, part):
            raise InvalidInputError(f"{where} has no {what!r}.{nearest(part, dir(thing))}")
        thing = getattr(thing, part)
    return thing


def _is_module_class(name: str) -> bool:
    return _is_class(_imported(name))


def _is_class(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, torch.nn.Module)


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_plain(part) for name, part in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return type(value) in _PLAIN


def _check_fits(saved: Saved, folder: Path, module: Any) -> None:
    """Load what was saved at once: a factory that does not fit is to be known now, not when the model is wanted."""
    try:
        made = _load(saved, folder)
    except (StoreError, TypeError) as error:
        raise InvalidInputError(f"The factory does not make what was given: {error}") from error
    if type(made).__qualname__ != type(module).__qualname__:
        raise InvalidInputError(
            f"The factory makes a {type(made).__qualname__}, and a {type(module).__qualname__} was given as model."
        )


def _on_cpu(module: Any) -> Any:
    first = next(module.parameters(), None)
    return module if first is None or first.device.type == "cpu" else copy.deepcopy(module).cpu()


def _with_torch(libraries: tuple[str, ...]) -> tuple[str, ...]:
    return ("torch", *(name for name in libraries if name != "torch"))
