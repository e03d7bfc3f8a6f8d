"""Models as the dashboard shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cargobike.core.errors import NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Thing, page_of
from cargobike.core.signatures import Field
from cargobike.core.values.times import on_calendar
from cargobike.models.catalogue.catalogue import Catalogue, Model
from cargobike.models.catalogue.summary import Summary, decode_summary
from cargobike.models.facts import AliasMoved, AliasRemoved
from cargobike.models.naming import NAME
from cargobike.models.pages.answers import (
    AliasMove,
    ModelDetails,
    ModelFile,
    ModelPage,
    ModelSource,
    NoteAnswer,
    Promoted,
    SignatureField,
    VersionDetails,
    VersionLine,
    VersionRemarks,
)
from cargobike.models.version import ModelVersion

_MOVES = 100


def listed(models: Sequence[tuple[Model, int, bytes]], words: str, offset: int, limit: int) -> ModelPage:
    """Return a part of the models in whose words a text occurs, each in its newest version, by name."""
    if not (wanted := words.strip().lower()):
        shown = [_line(model, decode_summary(data)) for model, _, data in models[offset : offset + limit]]
        return ModelPage(shown, len(models), offset, limit)
    summaries = ((model, decode_summary(data)) for model, _, data in models)
    fitting = [(model, summary) for model, summary in summaries if wanted in _words(model, summary)]
    shown = [_line(model, summary) for model, summary in fitting[offset : offset + limit]]
    return ModelPage(shown, len(fitting), offset, limit)


def details(project: ProjectFolder, name: str, offset: int, limit: int) -> ModelDetails:
    """Return one model with a part of its versions.

    Raises:
        NotFoundError: If there is none of that name.
    """
    model, encoded = Catalogue(project).summaries(checked(name))
    chosen = [data for _, data in reversed(encoded)][offset : offset + limit]
    moves = [_move(move) for move in reversed(model.state.moves[-_MOVES:])]
    return ModelDetails(
        name=model.name,
        versions=[_line(model, decode_summary(data)) for data in chosen],
        total=len(encoded),
        offset=offset,
        limit=limit,
        aliases=dict(model.state.aliases),
        moves=moves,
    )


def measured(project: ProjectFolder, name: str) -> dict[str, list[tuple[int, float]]]:
    """Return the finite values of each metric by version, the oldest first."""
    _, encoded = Catalogue(project).summaries(checked(name))
    metrics: dict[str, list[tuple[int, float]]] = {}
    for _, data in encoded:
        summary = decode_summary(data)
        for metric, value in summary.metrics.items():
            if math.isfinite(number := float(value)):
                metrics.setdefault(metric, []).append((summary.version, number))
    return metrics


def version_details(project: ProjectFolder, name: str, number: int, users: Sequence[Edge]) -> VersionDetails:
    """Return everything that is known of a version; `users` are the edges to what uses it.

    Raises:
        NotFoundError: If there is no such version.
    """
    version, model = _version(project, name, number)
    signature = version.signature
    return VersionDetails(
        model=_line(model, version.summary),
        fingerprint=version.fingerprint,
        libraries=list(version.libraries),
        inputs=None if signature is None else [_field(field) for field in signature.inputs],
        outputs=None if signature is None else [_field(field) for field in signature.outputs],
        params={key: str(value) for key, value in version.training.params.items()},
        sources=[_source(Thing(one.kind, one.name, one.version), one.relation, one.detail) for one in version.sources],
        used_by=[_source(edge.made, edge.relation, edge.detail) for edge in users],
        files=[ModelFile(file.path, file.size_bytes, file.sha256) for file in version.files],
        notes=[NoteAnswer(_iso(note.at), note.by, note.text) for note in version.notes],
        card=version.card,
        is_card_edited=version.is_card_edited,
        versions=[other for other in (number - 1, number + 1) if 1 <= other <= model.versions],
    )


def promoted(project: ProjectFolder, name: str, number: int, alias: str, when: str) -> Promoted:
    """Let an alias point at a version, if it passes a gate; return what was done.

    Raises:
        NotFoundError: If there is no such version.
        GateError: If it does not pass.
    """
    done = _version(project, name, number)[0].promote(alias, when=when)
    return Promoted(name, done.alias, done.version, done.before, dict(done.figures), done.remark)


def annotated(
    project: ProjectFolder, name: str, number: int, *, add: Sequence[str], remove: Sequence[str], note: str
) -> VersionRemarks:
    """Add tags and a note to a version, take tags away; return what is said about it then.

    Raises:
        NotFoundError: If there is no such version.
    """
    version, _ = _version(project, name, number)
    if add or remove:
        version.tag(*add, remove=remove)
    if note.strip():
        version.note(note)
    return VersionRemarks(list(version.tags), [NoteAnswer(_iso(one.at), one.by, one.text) for one in version.notes])


def _version(project: ProjectFolder, name: str, number: int) -> tuple[ModelVersion, Model]:
    catalogue = Catalogue(project)
    model = catalogue.model(checked(name))
    if not 1 <= number <= model.versions:
        raise NotFoundError(
            f"The model {name} has no version {number}; it has 1 to {model.versions}.", wanted=f"{name}:{number}"
        )
    return ModelVersion(catalogue, model, number), model


def checked(name: str) -> str:
    """Return the name of a model.

    Raises:
        NotFoundError: If it can be none.
    """
    if not NAME.fullmatch(name):
        raise NotFoundError(f"There is no model {name!r} in this project.", wanted=name)
    return name


def _line(model: Model, summary: Summary) -> VersionLine:
    state = model.state
    return VersionLine(
        name=model.name,
        version=summary.version,
        aliases=state.aliases_of(summary.version),
        flavour=summary.flavour,
        metrics={
            key: number if math.isfinite(number := float(value)) else None for key, value in summary.metrics.items()
        },
        description=summary.description,
        tags=list(state.tags_of(summary.version, summary.tags)),
        user=summary.user,
        registered_at=_iso(summary.at),
        size_bytes=summary.size_bytes,
        experiment=summary.experiment,
        trial=summary.trial,
        is_removed=summary.version in state.removed,
        is_imported=bool(summary.imported_from),
        problem=summary.problem,
    )


def _words(model: Model, summary: Summary) -> str:
    version, state = summary.version, model.state
    marks = (*state.tags_of(version, summary.tags), *state.aliases_of(version))
    return " ".join([model.name, summary.description, summary.flavour, summary.user, *marks]).lower()


def _move(move: AliasMoved | AliasRemoved) -> AliasMove:
    if isinstance(move, AliasMoved):
        return AliasMove(_iso(move.at), move.by, move.alias, move.version, move.before, move.when)
    return AliasMove(_iso(move.at), move.by, move.alias, None, move.before, "")


def _source(thing: Thing, relation: str, detail: str) -> ModelSource:
    return ModelSource(thing.kind, thing.name, thing.version, relation, detail, page_of(thing))


def _field(field: Field) -> SignatureField:
    return SignatureField(field.name, field.datatype, list(field.shape), field.nullable)


def _iso(at: float) -> str:
    return on_calendar(at).isoformat(timespec="milliseconds")
