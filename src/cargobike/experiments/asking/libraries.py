"""Which libraries a train function will import: read from its source, so that workers can load them ahead.

Only installed libraries count. The user's own modules may compute at import, and a process that has computed cannot be
forked safely; they are imported in the process of each trial. Nor does what may never be run: a library of gigabytes in
a branch for another kind of model is left to the trials that take it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import sys
from pathlib import Path
from types import ModuleType

from cargobike.core.installed import is_in_library
from cargobike.experiments.asking.function import Train
from cargobike.experiments.asking.imports import imports_run

_MOST_FILES = 50

_COMPANIONS = {
    "torch": ((".optim", "DistributedDataParallel", "DDP(", "fully_shard"), ("torch._dynamo",)),
    "cargobike": ((".checkpoint",), ("cargobike.experiments.trial.checkpoints.checkpoint",)),
    "cargobike.torch": (("cargobike.torch", "import torch as cargobike_torch"), ("torch", "torch._dynamo")),
}
"""Libraries that import another, slow one at first use: (texts in the source that show the use, modules)."""


def libraries_needed(train: Train) -> list[str]:
    """Return the modules of installed libraries that the function and the user's modules around it import."""
    names: dict[str, None] = {}
    seen: set[str] = set()
    chooses_backend = False
    around = _source_around(train)
    waiting = [around] if around else []
    functions = {getattr(train.plain, "__name__", None) or type(train.plain).__name__}
    while waiting and len(seen) < _MOST_FILES:
        text = waiting.pop()
        for name in imports_run(text, functions, is_theirs=text is around):
            top = name.partition(".")[0]
            if name in names or name in seen or top in sys.stdlib_module_names or top == "cargobike":
                continue
            seen.add(name)
            if _is_installed(top):
                names[name] = None
            else:
                source = _source_of_own(name)
                if source:
                    waiting.append(source)
        for library, (marks, companions) in _COMPANIONS.items():
            is_used = library.startswith("cargobike") or any(name.split(".")[0] == library for name in names)
            if is_used and any(mark in text for mark in marks):
                names |= dict.fromkeys(companions)
        chooses_backend = chooses_backend or "KERAS_BACKEND" in text
    if chooses_backend and "KERAS_BACKEND" not in os.environ:  # Keras reads it once: after the function has set it
        return [name for name in names if name.partition(".")[0] != "keras"]
    return list(names)


def _source_around(train: Train) -> str:
    """Return the text of the file or cell that the function is in, or of the function alone."""
    module = sys.modules.get(getattr(train.plain, "__module__", None) or "")
    with contextlib.suppress(OSError, TypeError):
        if isinstance(module, ModuleType) and getattr(module, "__file__", None):
            return inspect.getsource(module)
    mentioned = [
        f"import {value.__name__}"
        for value in getattr(train.plain, "__globals__", {}).values()
        if isinstance(value, ModuleType)
    ]
    return "\n".join([*mentioned, inspect.cleandoc(train.source()) if train.source() else ""])


def _is_installed(top: str) -> bool:
    module = sys.modules.get(top)
    try:
        spec = module.__spec__ if module is not None else importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return False
    paths = [getattr(spec, "origin", None) or "", *(getattr(spec, "submodule_search_locations", None) or [])]
    return any(is_in_library(os.fspath(path)) for path in paths)


def _source_of_own(name: str) -> str:
    """Return the text of one of the user's own modules, if it is loaded."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if isinstance(file, str) and file.endswith(".py"):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return Path(file).read_text(encoding="utf-8")
    return ""
