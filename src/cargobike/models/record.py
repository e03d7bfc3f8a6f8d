"""A version of a model as a project keeps it: `models/<name>/<version>/manifest.json`, created only if absent.

The files of a version lie in `models/<name>/files/<token>/`: the model itself below `model/`, beside it `example.json`
and `requirements.lock`. They are written first; the manifest makes them a version. Manifests may come from strangers:
what is read here is checked, and no path of one leads out of its folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from cargobike.core.layout import MODELS, REQUIREMENTS
from cargobike.core.registering.modelling import Training
from cargobike.core.signatures import Signature
from cargobike.core.values.packed_numbers import Number, unpack_numbers
from cargobike.models.naming import NAME
from cargobike.store.assets.manifests import FORMAT, read_manifest

MODEL: Final = "model/"
"""What the paths of files begin with that are the model itself."""
EXAMPLE: Final = "example.json"
FILES_ONLY: Final = "files"
"""The flavour of files that are kept as they are, and cannot predict."""
MOST_MANIFEST_BYTES: Final = 4 << 20
_MOST_FILES: Final = 10_000
_LONGEST_PATH: Final = 800

Count = Annotated[int, Meta(ge=0, le=2**62)]
Hex = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Token = Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
VersionNumber = Annotated[int, Meta(ge=1, le=10**9)]


class FileEntry(msgspec.Struct, frozen=True):
    """A file of a version: its path below the version's folder, its size, the SHA-256 of its bytes."""

    path: str
    size_bytes: Count
    sha256: Hex


class Source(msgspec.Struct, frozen=True):
    """Something that a version was made from: a kind of thing, its name and version; `relation` says how."""

    kind: str
    name: str
    version: str = ""
    relation: str = "made from"
    detail: str = ""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a model.

    Attributes:
        name: The model's name in the project.
        version: Its number, from 1.
        fingerprint: Flavour, signature and all bytes of the model: the same for equal content.
        flavour: How it is kept.
        details: What the flavour needs to know.
        libraries: Modules to import before it is loaded.
        runs_code: Whether loading runs code that the files hold.
        signature: What it takes and returns.
        metrics: What was measured of it.
        tags: Words that it was registered with; later ones are facts.
        files: Its files.
        token: Drawn by its writer; names the folder of its files.
        sources: What it was made from.
        training: The trial that made it, as far as that is known.
        imported_from: Where it was brought in from; empty if it was made in this project. Code of such a version is
            loaded only by users who say that they trust it.
        at: When it was registered, in seconds since 1970.
        step: What names the step of a pipeline that registered it; empty outside of pipelines.
    """

    format: int = FORMAT
    name: Annotated[str, Meta(pattern=f"^{NAME.pattern}$")]
    version: VersionNumber
    fingerprint: Hex
    flavour: Annotated[str, Meta(max_length=100)]
    details: dict[str, Any] = {}
    libraries: tuple[str, ...] = ()
    runs_code: bool = True
    signature: Signature | None = None
    metrics: dict[str, Number] = {}
    description: str = ""
    tags: tuple[str, ...] = ()
    files: tuple[FileEntry, ...]
    token: Token
    sources: tuple[Source, ...] = ()
    training: Training = Training()
    imported_from: str = ""
    at: float = 0.0
    user: str = ""
    host: str = ""
    cargobike: str = ""
    step: str = ""

    @property
    def size_bytes(self) -> int:
        """What the files need on the storage."""
        return sum(file.size_bytes for file in self.files)

    @property
    def figures(self) -> dict[str, float]:
        """The metrics, NaN and infinities included."""
        return unpack_numbers(self.metrics)

    def has(self, path: str) -> bool:
        """Tell whether it has a file."""
        return any(file.path == path for file in self.files)


def folder_of(name: str) -> str:
    """Return where everything of a model lies in its project."""
    return f"{MODELS}/{name}"


def path_of(name: str, version: int) -> str:
    """Return where the manifest of a version lies in its project."""
    return f"{MODELS}/{name}/{version}/manifest.json"


def files_of(name: str, token: str) -> str:
    """Return where the files of a version lie in its project."""
    return f"{MODELS}/{name}/files/{token}"


def fingerprint_of(
    flavour: str, details: dict[str, Any], signature: Signature | None, files: Iterable[FileEntry]
) -> str:
    """Return what is the same for equal content: flavour, details, signature and the files of the model itself."""
    parts = sorted((file.path, file.size_bytes, file.sha256) for file in files if file.path.startswith(MODEL))
    described = [flavour, details, msgspec.to_builtins(signature), parts]
    return hashlib.sha256(msgspec.json.encode(described, order="sorted")).hexdigest()


def decode_manifest(data: bytes, place: str) -> Manifest:
    """Return the manifest that some bytes hold; `place` says where they are from.

    Raises:
        StoreError: If they are no manifest, or one that cannot be trusted; says what is wrong.
    """
    return read_manifest(data, Manifest, place, noun="a model", mistakes_in=_mistakes, most_bytes=MOST_MANIFEST_BYTES)


def _mistakes(manifest: Manifest) -> list[str]:
    paths = [file.path for file in manifest.files]
    mistakes = [f"the path {path[:200]!r} is not one of a model's files" for path in paths if not is_plain(path)]
    if len(set(paths)) < len(paths):
        mistakes.append("a file is listed twice")
    if len(paths) > _MOST_FILES:
        mistakes.append(f"it lists {len(paths)} files, and {_MOST_FILES} are allowed")
    folders = {path[: -len(name) - 1] for path in paths for name in [path.rpartition("/")[2]] if "/" in path}
    mistakes += [f"{path[:200]!r} is a file and a folder" for path in paths if path in folders]
    if not mistakes:
        content = fingerprint_of(manifest.flavour, manifest.details, manifest.signature, manifest.files)
        if content != manifest.fingerprint:
            mistakes.append("its fingerprint is not that of what it lists")
    return mistakes


def is_plain(path: str) -> bool:
    """Tell whether a path stays in the folder that it begins in, on every storage and every system."""
    names = path.split("/")
    return (
        0 < len(path.encode("utf-8", "replace")) <= _LONGEST_PATH
        and path.isprintable()
        and "\\" not in path
        and all(0 < len(name.encode("utf-8", "replace")) <= 255 and name not in {".", ".."} for name in names)
        and not any("\ud800" <= character <= "\udfff" for character in path)
        and (path in {EXAMPLE, REQUIREMENTS} or (path.startswith(MODEL) and len(names) > 1))
    )
