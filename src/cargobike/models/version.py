"""A version of a model: what is known of it, what it predicts, and what can be done with it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from cargobike.core.errors import InvalidInputError, NotFoundError, UntrustedError
from cargobike.core.layout import REQUIREMENTS, ProjectFolder
from cargobike.core.registering.modelling import Predictor, Training
from cargobike.core.registering.steps import Kept, own_step
from cargobike.core.registering.tracing import Lineage, lineage_of
from cargobike.core.running.accounts import user_name
from cargobike.core.signatures import Signature
from cargobike.models.catalogue.catalogue import Catalogue, Model
from cargobike.models.catalogue.summary import Summary, decode_summary, summary_of
from cargobike.models.exchange.copying import copy_version
from cargobike.models.facts import (
    LONGEST_CARD,
    LONGEST_NOTE,
    AnyModelFact,
    CardWritten,
    Note,
    Noted,
    State,
    Tagged,
)
from cargobike.models.files import local_folder, pieces, problems_of
from cargobike.models.flavours.flavour import Saved
from cargobike.models.flavours.registry import load
from cargobike.models.naming import read_tags
from cargobike.models.promotion.promoting import Promotion, promote
from cargobike.models.record import (
    EXAMPLE,
    FILES_ONLY,
    MODEL,
    FileEntry,
    Manifest,
    Source,
    files_of,
)


class ModelVersion:
    """A version of a model. What it holds never changes; its aliases, tags, notes and card do.

    What can change is as it was when the version was asked for; `refresh` looks again.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        model: Model,
        version: int,
        *,
        manifest: Manifest | None = None,
        summary: bytes | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._model = model
        self._version = version
        self._manifest = manifest
        self._encoded = summary
        self._summary: Summary | None = None

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The model's name in the project."""
        return self._model.name

    @property
    def version(self) -> int:
        """Its number, from 1."""
        return self._version

    @property
    def reference(self) -> str:
        """Name and number, such as `digits:3`."""
        return f"{self.name}:{self.version}"

    def kept_as(self) -> Kept:
        """Return what a pipeline keeps of it."""
        return Kept("model", self.reference)

    @property
    def manifest(self) -> Manifest:
        """Everything that was recorded when it was registered."""
        if self._manifest is None:
            self._manifest = self._catalogue.manifest(self.name, self.version)
        return self._manifest

    @property
    def summary(self) -> Summary:
        """What lists show of it."""
        if self._summary is None:
            encoded = self._encoded
            summary = decode_summary(encoded) if encoded is not None and self._manifest is None else None
            self._summary = summary if summary is not None and not summary.problem else summary_of(self.manifest)
        return self._summary

    @property
    def fingerprint(self) -> str:
        """The same for equal content."""
        return self.summary.fingerprint

    @property
    def flavour(self) -> str:
        """How it is kept, such as `torch` or `sklearn`."""
        return self.summary.flavour

    @property
    def signature(self) -> Signature | None:
        """What it takes and returns; `None` if that is not known."""
        return self.manifest.signature

    @property
    def metrics(self) -> Mapping[str, float]:
        """What was measured of it."""
        return MappingProxyType({name: float(value) for name, value in self.summary.metrics.items()})

    @property
    def description(self) -> str:
        """What it is, in a sentence."""
        return self.summary.description

    @property
    def libraries(self) -> tuple[str, ...]:
        """Modules to import before it is loaded."""
        return self.manifest.libraries

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """Its files, each with its size and SHA-256."""
        return self.manifest.files

    @property
    def size_bytes(self) -> int:
        """What its files need on the storage."""
        return self.summary.size_bytes

    @property
    def at(self) -> float:
        """When it was registered, in seconds since 1970."""
        return self.summary.at

    @property
    def user(self) -> str:
        """Who registered it."""
        return self.summary.user

    @property
    def is_imported(self) -> bool:
        """Whether it was brought in from elsewhere, so that loading code of it needs an explicit yes."""
        return bool(self.summary.imported_from)

    @property
    def training(self) -> Training:
        """The experiment and trial that made it, its code and its data, as far as they are known."""
        return self.manifest.training

    @property
    def sources(self) -> tuple[Source, ...]:
        """What it was made from."""
        return self.summary.sources

    @property
    def example(self) -> list[Any] | None:
        """A few rows to try it with; `None` if none were given."""
        data = self._read(EXAMPLE)
        return None if data is None else json.loads(data)

    @property
    def requirements(self) -> str:
        """The packages that it needs, as a lock file; empty if they are not known."""
        return (self._read(REQUIREMENTS) or b"").decode("utf-8", "replace")

    # -- what changes --------------------------------------------------------------------------------------------

    @property
    def _state(self) -> State:
        return self._model.state

    @property
    def aliases(self) -> list[str]:
        """The aliases that point at it."""
        return self._state.aliases_of(self.version)

    @property
    def all_aliases(self) -> dict[str, int]:
        """The aliases of its model, and the version that each points at."""
        return dict(self._state.aliases)

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags, in alphabetical order."""
        return self._state.tags_of(self.version, self.summary.tags)

    @property
    def notes(self) -> list[Note]:
        """What was noted about it, the oldest first."""
        return list(self._state.notes.get(self.version, ()))

    @property
    def is_removed(self) -> bool:
        """Whether its files were deleted."""
        return self.version in self._state.removed

    @property
    def card(self) -> str:
        """Its card in Markdown: the edited one, or one that is made from what is known."""
        from cargobike.models.cards import make_card  # noqa: PLC0415 - needs NumPy, which lists do not

        return self._state.cards.get(self.version) or make_card(self.manifest, self._state)

    @property
    def is_card_edited(self) -> bool:
        """Whether the card was written by a person."""
        return bool(self._state.cards.get(self.version))

    def refresh(self) -> ModelVersion:
        """Look again at what can change, and return the version itself."""
        self._model = self._catalogue.model(self.name)
        return self

    def tag(self, *tags: str, remove: Sequence[str] = ()) -> ModelVersion:
        """Add tags, and take others away."""
        add, away = read_tags(tags), read_tags(remove)
        return self._add(Tagged(at=time.time(), by=user_name(), version=self.version, add=add, remove=away))

    def note(self, text: str) -> ModelVersion:
        """Write something down about it."""
        if type(text) is not str or not text.strip() or len(text) > LONGEST_NOTE:
            raise InvalidInputError(f"A note is a text of 1 to {LONGEST_NOTE:,} characters.")
        return self._add(Noted(at=time.time(), by=user_name(), version=self.version, text=text.strip()))

    def write_card(self, text: str) -> ModelVersion:
        """Replace its card; an empty text goes back to the one that is made from what is known."""
        if type(text) is not str or len(text) > LONGEST_CARD:
            raise InvalidInputError(f"A card is a text of at most {LONGEST_CARD:,} characters.")
        return self._add(CardWritten(at=time.time(), by=user_name(), version=self.version, text=text))

    @own_step("version.promote", recover="cargobike.models.recovering:recover_promote")
    def promote(self, alias: str, *, when: str = "") -> Promotion:
        """Let an alias point at this version, if it passes a gate; the alias moves at once or not at all.

        Args:
            alias: The alias, such as `champion`.
            when: The gate, such as `"accuracy >= champion.accuracy and latency_ms <= 20"`: metrics of this version by
                name, and metrics of the versions that aliases point at now. If another version is promoted meanwhile,
                it is judged against that one. What is compared with an alias that points at nothing yet, holds.

        Raises:
            GateError: If it does not pass; with the figures.
            InvalidInputError: If alias or gate cannot be understood.
            NotFoundError: If the version was removed.
        """
        promotion = promote(self._catalogue, self.name, self.version, alias, when)
        self.refresh()
        return promotion

    def _add(self, fact: AnyModelFact) -> ModelVersion:
        self._catalogue.add_fact(self.name, lambda _: fact)
        return self.refresh()

    # -- what it does --------------------------------------------------------------------------------------------

    def predictor(self, *, trust: bool = False) -> Predictor:
        """Load it, and return what predicts: takes a list of rows, returns one answer for each.

        Args:
            trust: Whether code of a version that was brought in from elsewhere may be run.

        Raises:
            UntrustedError: If it was brought in from elsewhere, loading it runs code, and `trust` was not said.
            InvalidInputError: If it only holds files.
        """
        if self.flavour == FILES_ONLY:
            raise InvalidInputError(
                f"{self.reference} holds files and cannot predict; {self.reference}.load() returns their folder."
            )
        self._check_trust(trust)
        manifest = self.manifest
        saved = Saved(
            flavour=manifest.flavour,
            details=manifest.details,
            libraries=manifest.libraries,
            runs_code=manifest.runs_code,
        )
        return load(saved, self.folder() / MODEL.rstrip("/"))

    def load(self, *, trust: bool = False) -> Any:
        """Load it, and return what predicts; of a version that only holds files, the folder with them."""
        if self.flavour == FILES_ONLY:
            return self.folder() / MODEL.rstrip("/")
        return self.predictor(trust=trust)

    def predict(self, rows: Any, *, trust: bool = False) -> list[Any]:
        """Load it and return its answers for some rows; to ask more than once, keep what `predictor` returns.

        Args:
            rows: A list of rows, an array whose first axis is the rows, a DataFrame, or a dict of columns.
            trust: Whether code of a version that was brought in from elsewhere may be run.
        """
        from cargobike.models.flavours.rows import rows_of  # noqa: PLC0415 - needs NumPy, and lists do not

        return list(self.predictor(trust=trust)(rows_of(rows)))

    def folder(self) -> Path:
        """Return a folder of this machine with its files: where they lie, or a copy.

        Raises:
            NotFoundError: If it was removed.
            StoreError: If files are missing or damaged.
        """
        if self.is_removed:
            raise NotFoundError(f"{self.reference} was removed.", wanted=self.reference)
        return local_folder(self._catalogue.project, self._catalogue.storage, self.manifest)

    def copy_to(self, project: ProjectFolder) -> None:
        """Write it into another project, under the same name and number: for images that serve it.

        Raises:
            InvalidInputError: If that project has another version of that name and number.
        """
        if self.is_removed:
            raise NotFoundError(f"{self.reference} was removed.", wanted=self.reference)
        copy_version(self._catalogue, self.manifest, project)

    def verify(self) -> list[str]:
        """Read all its files and compare them with its fingerprint; returns what is wrong, nothing if all is well."""
        if self.is_removed:
            raise NotFoundError(f"{self.reference} was removed.", wanted=self.reference)
        return problems_of(self._catalogue.storage, self.manifest)

    def lineage(self) -> Lineage:
        """Return what it came from, and what came from it, step by step, in both directions."""
        try:
            return lineage_of(self._catalogue.project, self.reference, "model")
        except NotFoundError:
            return Lineage([], [])

    def as_json(self) -> dict[str, Any]:
        """Return what is known of it as plain data."""
        manifest = self.manifest
        described = msgspec.to_builtins(manifest)
        for name in ("format", "token"):
            del described[name]
        return {
            **described,
            "aliases": self.aliases,
            "tags": list(self.tags),
            "notes": msgspec.to_builtins(self.notes),
            "size_bytes": manifest.size_bytes,
            "is_imported": self.is_imported,
            "removed_at": self._state.removed.get(self.version),
        }

    def __repr__(self) -> str:
        aliases = "".join(f" @{alias}" for alias in self.aliases)
        return f"ModelVersion({self.reference!r}{aliases})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelVersion):
            return NotImplemented
        return (self._catalogue.storage.url, self.name, self._model.born, self.version) == (
            other._catalogue.storage.url,
            other.name,
            other._model.born,
            other.version,
        )

    def __hash__(self) -> int:
        return hash((self.name, self.version))

    def _check_trust(self, trust: bool) -> None:
        if self.is_imported and self.manifest.runs_code and not trust:
            raise UntrustedError(
                f"{self.reference} was brought in from {self.manifest.imported_from}, and loading it runs code that is "
                "in its files. If you trust who made it, say so: trust=True, or --trust on the command line."
            )

    def _read(self, path: str) -> bytes | None:
        entry = next((file for file in self.manifest.files if file.path == path), None)
        if entry is None or self.is_removed:
            return None
        place = files_of(self.name, self.manifest.token)
        return b"".join(pieces(self._catalogue.storage, place, entry))
