"""Reads what a project knows of its models, and adds facts to it.

A model exists when `models/_names/<name>` does: listing that folder finds all models on any storage, without listing
their files. What is new of a model is found by reading on from where the cache ends: the next manifest, the next fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Final, NamedTuple

from cargobike.core.errors import NotFoundError, StoreError, nearest, nearest_names
from cargobike.core.layout import MODELS, ProjectFolder
from cargobike.models.catalogue.cache import Cache, Known, News, with_cache
from cargobike.models.catalogue.summary import Summary, decode_summary, encode_summary, summary_of
from cargobike.models.facts import (
    MOST_FACT_BYTES,
    AnyModelFact,
    State,
    decode_fact,
    decode_state,
    encode_fact,
    encode_state,
    fact_path,
)
from cargobike.models.naming import NAME, Reference, check_name
from cargobike.models.record import MOST_MANIFEST_BYTES, Manifest, decode_manifest, path_of
from cargobike.store.assets.numbering import MOST
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import storage_of

_NAMES: Final = f"{MODELS}/_names"
_MOST_AT_ONCE: Final = 32
_LONGEST_PROBLEM: Final = 500


class Model(NamedTuple):
    """What is known of a model now; `problem` says which fact cannot be read, if one cannot."""

    name: str
    born: str
    versions: int
    state: State
    problem: str = ""

    @property
    def newest(self) -> int | None:
        """The newest version that was not removed."""
        return next((number for number in range(self.versions, 0, -1) if number not in self.state.removed), None)


class Catalogue:
    """The models of a project.

    Args:
        project: The project; nothing is created in it by reading, but the cache if the project is there.
    """

    def __init__(self, project: ProjectFolder) -> None:
        self.project = project
        self.storage: Storage = storage_of(project)

    # -- reading -------------------------------------------------------------------------------------------------

    def names(self) -> dict[str, str]:
        """Return the names of all models, in order, each with a token that tells it from an earlier one of the name."""
        entries = ((entry.path.removeprefix(f"{_NAMES}/"), entry.token) for entry in self.storage.list(_NAMES))
        return dict(sorted((name, token) for name, token in entries if NAME.fullmatch(name)))

    def model(self, name: str) -> Model:
        """Return what is known of a model now.

        Raises:
            NotFoundError: If there is none of that name; says which have similar names.
        """
        model = self.find(check_name(name))
        if model is None or not model.versions:
            raise self._no_model(name)
        return model

    def find(self, name: str) -> Model | None:
        """Return what is known of a model now; `None` if there is none, `versions` may be 0 while its first is made."""
        entry = self.storage.stat(f"{_NAMES}/{name}")
        if entry is None:
            return None
        return with_cache(self.project.models_index, lambda cache: self._caught_up(cache, name, entry.token))

    def models(self) -> list[Model]:
        """Return what is known of all models now, by name; those without a version yet are left out."""
        return [model for model, _, _ in with_cache(self.project.models_index, self._newest)]

    def newest(self) -> list[tuple[Model, int, bytes]]:
        """Return all models by name, each with the number and summary of its newest version that was not removed."""
        found = with_cache(self.project.models_index, self._newest)
        return [(model, version, data) for model, version, data in found if data is not None and version is not None]

    def summaries(self, name: str) -> tuple[Model, list[tuple[int, bytes]]]:
        """Return a model and its versions, the oldest first, each with its summary as `decode_summary` reads it.

        Raises:
            NotFoundError: If there is none of that name.
        """
        check_name(name)
        entry = self.storage.stat(f"{_NAMES}/{name}")
        if entry is None:
            raise self._no_model(name)
        born = entry.token

        def read(cache: Cache) -> tuple[Model, list[tuple[int, bytes]]]:
            return self._caught_up(cache, name, born), cache.summaries(name, born)

        model, summaries = with_cache(self.project.models_index, read)
        if not model.versions:
            raise self._no_model(name)
        return model, summaries

    def all_summaries(self) -> Iterator[tuple[Model, Summary]]:
        """Yield all versions of all models, removed ones too."""

        def read(cache: Cache) -> list[tuple[Model, list[bytes]]]:
            models = [model for model, _, _ in self._newest(cache)]
            known = cache.all_summaries()
            return [(model, known.get((model.name, model.born), [])) for model in models]

        for model, summaries in with_cache(self.project.models_index, read):
            for data in summaries:
                yield model, decode_summary(data)

    def manifest(self, name: str, version: int) -> Manifest:
        """Return the manifest of a version.

        Raises:
            StoreError: If it is gone, or cannot be understood.
        """
        place = path_of(name, version)
        data = self.storage.read(place, 0, MOST_MANIFEST_BYTES + 1)
        if data is None:
            raise StoreError(f"{self.storage}/{place} is gone.")
        return _checked(data, f"{self.storage}/{place}", name, version)

    def resolve(self, reference: Reference) -> tuple[Model, int]:
        """Return the model that a reference means, and the number of the version.

        Raises:
            NotFoundError: If there is no such model, version or alias; says which there are.
        """
        model = self.model(reference.name)
        if reference.alias:
            _check_facts(model)
            if reference.alias not in model.state.aliases:
                aliases = sorted(model.state.aliases)
                raise NotFoundError(
                    f"The model {model.name} has no alias {reference.alias!r}; it has "
                    f"{', '.join(aliases) or 'none yet'}.{nearest(reference.alias, aliases)}",
                    wanted=str(reference),
                    nearest=[f"{model.name}@{alias}" for alias in nearest_names(reference.alias, aliases)],
                )
            return model, model.state.aliases[reference.alias]
        if reference.version is None:
            if model.newest is None:
                raise NotFoundError(
                    f"All {model.versions} versions of the model {model.name} were removed.", wanted=model.name
                )
            return model, model.newest
        if reference.version > model.versions:
            raise NotFoundError(
                f"The model {model.name} has no version {reference.version}; it has 1 to {model.versions}.",
                wanted=str(reference),
                nearest=[f"{model.name}:{model.versions}"],
            )
        return model, reference.version

    # -- writing -------------------------------------------------------------------------------------------------

    def announce(self, name: str) -> None:
        """Make a model known by name, before its first version is."""
        self.storage.create(f"{_NAMES}/{name}", token_hex(8).encode())

    def add_fact(self, name: str, decide: Callable[[Model], AnyModelFact]) -> AnyModelFact:
        """Add a fact to a model, decided on what holds at that very moment, and return it.

        Args:
            name: The model.
            decide: Makes the fact of what holds, or raises; called again whenever another writer was quicker.
        """
        for _ in range(MOST):
            model = self.model(name)
            _check_facts(model)
            fact = decide(model)
            if self.storage.create(fact_path(name, model.state.facts + 1), encode_fact(fact)):
                return fact
        raise StoreError(f"{self.storage} takes no more facts about the model {name}.")

    # -- inside --------------------------------------------------------------------------------------------------

    def _newest(self, cache: Cache) -> list[tuple[Model, int | None, bytes | None]]:
        known = cache.known()
        pairs = [self._read_on(name, born, known.get((name, born))) for name, born in self.names().items()]
        news = [one for _, one in pairs if one is not None]
        if news:
            cache.add(news)
        last = cache.last_summaries()
        newest: list[tuple[Model, int | None, bytes | None]] = []
        for model, _ in pairs:
            version, summary = last.get((model.name, model.born), (0, None))
            if version != model.versions or version in model.state.removed:
                version = model.newest or 0
                summary = cache.summary(model.name, model.born, version)
            if model.versions:
                newest.append((model, version or None, summary))
        return newest

    def _caught_up(self, cache: Cache, name: str, born: str) -> Model:
        model, news = self._read_on(name, born, cache.known_of(name, born))
        if news is not None:
            cache.add([news])
        return model

    def _read_on(self, name: str, born: str, known: Known | None) -> tuple[Model, News | None]:
        """Return what is known of a model now, and what of that is new."""
        known = known or Known(0, 0, b"")
        state = decode_state(known.state) if known.state else State()
        summaries = [
            (number, encode_summary(self._summary(data, name, number)))
            for number, data in self._following(lambda number: path_of(name, number), known.versions)
        ]
        problem = ""
        for number, data in self._following(lambda number: fact_path(name, number), known.facts, MOST_FACT_BYTES):
            try:
                state.apply(decode_fact(data, f"{self.storage}/{fact_path(name, number)}"))
            except StoreError as error:
                problem = str(error)
                break
        versions = known.versions + len(summaries)
        model = Model(name, born, versions, state, problem)
        if not summaries and state.facts == known.facts:
            return model, None
        return model, News(name, born, Known(versions, state.facts, encode_state(state)), summaries)

    def _following(
        self, path: Callable[[int], str], known: int, most_bytes: int = MOST_MANIFEST_BYTES
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the numbers after one that have a file, each with its bytes; of many, many are read at once."""
        at_once = 1
        while True:
            numbers = range(known + 1, known + 1 + at_once)
            for number, data in zip(numbers, self._read([path(each) for each in numbers], most_bytes), strict=True):
                if data is None:
                    return
                yield number, data
            known, at_once = numbers[-1], min(2 * at_once, _MOST_AT_ONCE)

    def _read(self, paths: list[str], most_bytes: int) -> list[bytes | None]:
        if len(paths) == 1 or "://" not in self.storage.url:
            return [self.storage.read(path, 0, most_bytes + 1) for path in paths]
        with ThreadPoolExecutor(len(paths), "cargobike-models") as threads:
            return list(threads.map(lambda path: self.storage.read(path, 0, most_bytes + 1), paths))

    def _summary(self, data: bytes, name: str, version: int) -> Summary:
        try:
            return summary_of(_checked(data, f"{self.storage}/{path_of(name, version)}", name, version))
        except StoreError as error:
            return Summary(version, problem=str(error)[:_LONGEST_PROBLEM])

    def _no_model(self, name: str) -> NotFoundError:
        names = list(self.names())
        return NotFoundError(
            f"There is no model {name!r}; there are {', '.join(names[:20]) or 'none yet'}.{nearest(name, names)}",
            wanted=name,
            nearest=nearest_names(name, names),
        )


def _checked(data: bytes, place: str, name: str, version: int) -> Manifest:
    manifest = decode_manifest(data, place)
    if (manifest.name, manifest.version) != (name, version):
        raise StoreError(f"{place} describes another version: {manifest.name}:{manifest.version}.")
    return manifest


def _check_facts(model: Model) -> None:
    """Refuse to decide anything about a model of which a fact cannot be read."""
    if model.problem:
        raise StoreError(f"Not all facts about the model {model.name} can be read: {model.problem}")
