"""The shapes that the API of models answers with."""

from __future__ import annotations

from typing import Annotated, Any

from cargobike.ui.answers import Answer, Field

Count = Annotated[int, Field(ge=0)]


class VersionLine(Answer):
    """One version of a model, as lists show it."""

    name: str
    version: Annotated[int, Field(ge=1)]
    aliases: list[str]
    flavour: str
    metrics: Annotated[dict[str, float | None], Field(description="`null` for NaN and infinities.")]
    description: str
    tags: list[str]
    user: str
    registered_at: str
    size_bytes: Count
    experiment: Annotated[str, Field(description="The experiment that made it; empty if it was made outside one.")]
    trial: int | None
    is_removed: bool
    is_imported: bool
    problem: Annotated[str, Field(description="Why its manifest cannot be read, if so.")]


class ModelPage(Answer):
    """A part of the list of models, each in its newest version."""

    models: list[VersionLine]
    total: Count
    offset: Count
    limit: Count


class AliasMove(Answer):
    """A move of an alias."""

    at: str
    by: str
    alias: str
    version: Annotated[int | None, Field(description="Where it points at since; `null` if it was taken away.")]
    before: int | None
    gate: Annotated[str, Field(description="What the version had to pass, if anything.")]


class ModelDetails(Answer):
    """One model: its versions, its aliases and their history."""

    name: str
    versions: Annotated[list[VersionLine], Field(description="The newest first.")]
    total: Count
    offset: Count
    limit: Count
    aliases: dict[str, int]
    moves: Annotated[list[AliasMove], Field(description="The newest first, 100 at most.")]


class Promoted(Answer):
    """What a promotion did."""

    name: str
    alias: str
    version: Annotated[int, Field(ge=1, description="The version that the alias points at now.")]
    before: Annotated[int | None, Field(description="The version that it pointed at before; `null` if it is new.")]
    figures: Annotated[dict[str, float | None], Field(description="What the gate compared, by name.")]
    remark: Annotated[str, Field(description="What there is to say about the gate.")]


class ModelFile(Answer):
    """A file of a version."""

    path: str
    size_bytes: Count
    sha256: str


class ModelSource(Answer):
    """Something that a version was made from."""

    kind: str
    name: str
    version: str
    relation: str
    detail: str
    page: Annotated[str, Field(description="The address of its page; empty if it has none.")]


class SignatureField(Answer):
    """A value that a model takes or returns."""

    name: str
    datatype: str
    shape: list[int]
    nullable: bool


class NoteAnswer(Answer):
    """A note about a version."""

    at: str
    by: str
    text: str


class VersionRemarks(Answer):
    """What people said about a version: its tags, and its notes, the oldest first."""

    tags: list[str]
    notes: list[NoteAnswer]


class VersionDetails(Answer):
    """One version of a model: everything that is known of it."""

    model: VersionLine
    fingerprint: str
    libraries: list[str]
    inputs: list[SignatureField] | None
    outputs: list[SignatureField] | None
    params: Annotated[dict[str, Any], Field(description="The hyperparameters that it was trained with.")]
    sources: list[ModelSource]
    used_by: list[ModelSource]
    files: list[ModelFile]
    notes: list[NoteAnswer]
    card: Annotated[str, Field(description="Its card, in Markdown.")]
    is_card_edited: bool
    versions: Annotated[list[int], Field(description="Its neighbours: the version before and after it.")]
