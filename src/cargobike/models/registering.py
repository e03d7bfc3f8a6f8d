"""Registers versions: from a model, from files, from a trial, from what a train function has packed."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cargobike.core.errors import CargobikeError, InvalidInputError
from cargobike.core.layout import REQUIREMENTS, ProjectFolder
from cargobike.core.registering.modelling import Trained, TrainedTrial, Training
from cargobike.core.registering.steps import own_step
from cargobike.core.registering.tracing import Thing, all_edges
from cargobike.core.values.packed_numbers import unpack_numbers
from cargobike.models.catalogue.catalogue import Catalogue
from cargobike.models.catalogue.summary import decode_summary
from cargobike.models.naming import check_name
from cargobike.models.packing import Packed, pack, read_packed
from cargobike.models.record import Source
from cargobike.models.version import ModelVersion
from cargobike.models.writing import Draft, commit_draft
from cargobike.store.files import project as projects

_log = logging.getLogger(__name__)


@own_step("models.register", recover="cargobike.models.recovering:recover_register")
def register(
    name: str,
    model: Any = None,
    *,
    files: Any = None,
    trial: TrainedTrial | None = None,
    factory: Any = None,
    metrics: Mapping[str, float] | None = None,
    signature: Any = None,
    example: Any = None,
    description: str = "",
    tags: Any = (),
    made_from: Sequence[Thing] = (),
    requirements: str = "",
    project: ProjectFolder | None = None,
) -> ModelVersion:
    """Keep a model as the next version of its name, which appears at once or not at all.

    Args:
        name: The model's name in the project; lower-case letters, digits, `_` and `-`.
        model: A function of a list of rows that returns one answer for each; a class or object with `predict`; a model
            of torch, scikit-learn, Keras, JAX or ONNX.
        files: Instead of a model, files to keep as they are: a path, a list of paths, or a dict from names to paths.
        trial: The trial that made it, such as `result.best`: its metrics and where it came from are recorded. Without
            `model` and `files`, what its train function kept with `trial.model.save`, or else its best checkpoint.
        factory: What makes a module of torch, so that only its weights are kept, and no pickle.
        metrics: What was measured of it.
        signature: What it takes and returns; by default what the example shows.
        example: A few rows: the model must be able to answer them, and servers warm up with them.
        description: A sentence for people.
        tags: Words, to find it by.
        made_from: Other things of the project that it was made from.
        requirements: The packages that it needs, as a lock file; by default those of the trial, or of this process.
        project: Where to keep it; by default the project in use.

    Raises:
        InvalidInputError: If it cannot be kept.
        PredictionError: If the model fails on the example.

    Example:
        >>> from cargobike import models
        >>> def double(rows):
        ...     return [2 * row for row in rows]
        >>> version = models.register("double", double, metrics={"error": 0.0}, example=[1.0, 2.0])
        >>> version.predict([21.0])
        [42.0]
    """
    check_name(name)
    trained = None if trial is None else _trained(trial)
    said = {
        "metrics": metrics,
        "signature": signature,
        "example": example,
        "description": description,
        "tags": tags,
        "requirements": requirements,
    }
    if model is None and files is None:
        if trained is None:
            raise InvalidInputError(
                "There is nothing to register: give model=…, a function or a model of a library; files=…, paths of "
                "files; or trial=…, such as result.best."
            )
        if (packed := _packed(trained, name)) is not None and not any(said.values()) and factory is None:
            return register_packed(packed, trained, name=name, project=project, even_if_removed=True)
        model, files = _left_by(trained, factory)
    if trained is not None:
        said["metrics"] = {**trained.metrics, **(metrics or {})}
        said["requirements"] = requirements or trained.requirements
        project = project or trained.project
    catalogue = Catalogue(project if project is not None else projects.prepare())
    with tempfile.TemporaryDirectory(prefix="cargobike-model-") as temporary:
        folder = Path(temporary, "packed")
        pack(folder, name, model, files=files, factory=factory, **said)
        packed_model, paths = read_packed(folder)
        return _commit(catalogue, packed_model, paths, trained, made_from)


def register_packed(
    folder: Path,
    trained: Trained,
    *,
    name: str = "",
    project: ProjectFolder | None = None,
    even_if_removed: bool = False,
) -> ModelVersion:
    """Register what a train function has packed, once: again, the version that it became is returned.

    One that was removed since comes back only if it is wanted: a driver that takes over must not bring it back.

    Raises:
        StoreError: If the folder holds no packed model.
    """
    said, files = read_packed(folder)
    name = name or said.name
    catalogue = Catalogue(project or trained.project)
    already = _registered(catalogue, name, trained.training)
    if already is not None and not (already.is_removed and even_if_removed):
        return already
    measured = {**trained.metrics, **unpack_numbers(said.metrics)}
    if trained.requirements:
        files.pop(REQUIREMENTS, None)
    with tempfile.TemporaryDirectory(prefix="cargobike-model-") as temporary:
        if trained.requirements:
            files[REQUIREMENTS] = Path(temporary, REQUIREMENTS)
            files[REQUIREMENTS].write_text(trained.requirements, encoding="utf-8")
        return _commit(catalogue, said, files, trained, (), name=name, metrics=measured)


def _commit(
    catalogue: Catalogue,
    said: Packed,
    files: dict[str, Path],
    trained: Trained | None,
    made_from: Sequence[Thing],
    *,
    name: str = "",
    metrics: dict[str, float] | None = None,
) -> ModelVersion:
    training = Training() if trained is None else trained.training
    things = [*made_from, *(() if trained is None else trained.made_from)]
    if training.experiment:
        things += _trained_on(catalogue.project, training.experiment)
    draft = Draft(
        name=name or said.name,
        saved=said.saved,
        files=files,
        signature=said.signature,
        metrics=metrics if metrics is not None else unpack_numbers(said.metrics),
        description=said.description,
        tags=said.tags,
        sources=_sources(training, things),
        training=training,
    )
    manifest = commit_draft(catalogue, draft)
    return ModelVersion(catalogue, catalogue.model(manifest.name), manifest.version, manifest=manifest)


def _registered(catalogue: Catalogue, name: str, training: Training) -> ModelVersion | None:
    """Return the version that a trial's packed model became before; `None` if it became none."""
    model = catalogue.find(name)
    if model is None or not model.versions or not training.experiment:
        return None
    mark = (training.experiment, training.trial, training.attempt)
    model, summaries = catalogue.summaries(name)
    for version, data in reversed(summaries):
        summary = decode_summary(data)
        if (summary.experiment, summary.trial, summary.attempt) == mark and not summary.imported_from:
            return ModelVersion(catalogue, model, version, summary=data)
    return None


def _sources(training: Training, things: Sequence[Thing]) -> tuple[Source, ...]:
    sources = [
        Source(thing.kind, thing.name, str(thing.version), "trained on" if thing.kind in _DATA else "made from")
        for thing in map(_read_thing, things)
    ]
    if training.experiment:
        detail = "" if training.trial is None else f"trial {training.trial}"
        sources.insert(0, Source("experiment", training.experiment, "", "made from", detail))
    return tuple(dict.fromkeys(sources))


_DATA = frozenset({"dataset", "table", "group"})


def _trained_on(project: ProjectFolder, experiment: str) -> list[Thing]:
    """Return the data that an experiment was trained on, and the views that training datasets were made of."""
    problems: list[str] = []
    edges = list(all_edges(project, problems))
    if problems:
        _log.warning("It may not be known what %s was trained on: %s", experiment, "; ".join(problems))
    data = [edge.source for edge in edges if edge.made == Thing("experiment", experiment) and edge.source.kind in _DATA]
    views = [edge.source for edge in edges if edge.made in data and edge.source.kind == "view"]
    return [*data, *views]


def _read_thing(thing: Any) -> Thing:
    if isinstance(thing, tuple) and 2 <= len(thing) <= 3 and all(isinstance(part, str) for part in thing):
        return Thing(*thing)
    raise InvalidInputError(
        f"made_from holds {thing!r}; give things as (kind, name, version), such as ('dataset', 'team_value', '2')."
    )


def _trained(trial: TrainedTrial) -> Trained:
    trained = getattr(trial, "trained", None)
    if not callable(trained):
        raise InvalidInputError(
            f"trial={trial!r} was given; give a trial of a result, such as result.best or result.trials[3]."
        )
    known: Trained = trained()
    return known


def _packed(trained: Trained, name: str) -> Path | None:
    """Return what a train function has packed under a name, or under the only one."""
    if name in trained.packed:
        return trained.packed[name]
    return next(iter(trained.packed.values())) if len(trained.packed) == 1 else None


def _left_by(trained: Trained, factory: Any) -> tuple[Any, Any]:
    """Return the model or the files that a trial left in its best checkpoint."""
    number = trained.training.trial
    if trained.load_state is None:
        raise InvalidInputError(
            f"Trial {number} has kept no model and no checkpoint. Call trial.model.save(…) or trial.checkpoint.save(…) "
            "in the train function, or give the model: register(…, model=…)."
        )
    state = trained.load_state()
    if isinstance(state, Path):
        return None, state
    if factory is not None:
        return _with_state(factory, state), None
    if callable(state) or callable(getattr(state, "predict", None)):
        return state, None
    raise InvalidInputError(
        f"The checkpoint of trial {number} holds a {type(state).__name__}, which cannot predict by itself. Say what "
        "makes the model that it is the state of: register(…, factory=make_net)."
    )


def _with_state(factory: Any, state: Any) -> Any:
    """Make a module and give it a state: one that was saved alone, or as `model` beside others."""
    if not callable(factory):
        raise InvalidInputError(f"factory={factory!r} was given; give a function or class that makes the module.")
    module = factory()
    if not callable(getattr(module, "load_state_dict", None)):
        raise InvalidInputError(
            f"The factory made a {type(module).__name__}, which has no load_state_dict; give model=… instead."
        )
    weights = state
    if isinstance(state, Mapping):
        weights = next((state[key] for key in ("model", "state_dict", "model_state_dict") if key in state), state)
    try:
        module.load_state_dict(weights)
    except CargobikeError:
        raise
    except Exception as error:
        raise InvalidInputError(
            f"The state of the checkpoint does not fit the {type(module).__name__} that the factory made: {error}"
        ) from error
    return module
