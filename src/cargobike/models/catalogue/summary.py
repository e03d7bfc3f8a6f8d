"""What lists show of a version, small enough that ten thousand are read in a moment."""

from __future__ import annotations

import msgspec

from cargobike.core.values.packed_numbers import Number
from cargobike.models.record import Manifest, Source


class Summary(msgspec.Struct, frozen=True, array_like=True):
    """The head of a manifest; `problem` says why the manifest cannot be read, if so."""

    version: int
    at: float = 0.0
    flavour: str = ""
    fingerprint: str = ""
    token: str = ""
    size_bytes: int = 0
    metrics: dict[str, Number] = {}
    description: str = ""
    tags: tuple[str, ...] = ()
    user: str = ""
    imported_from: str = ""
    experiment: str = ""
    trial: int | None = None
    attempt: int = 0
    sources: tuple[Source, ...] = ()
    problem: str = ""
    step: str = ""


def summary_of(manifest: Manifest) -> Summary:
    """Return the head of a manifest."""
    training = manifest.training
    return Summary(
        manifest.version,
        manifest.at,
        manifest.flavour,
        manifest.fingerprint,
        manifest.token,
        manifest.size_bytes,
        manifest.metrics,
        manifest.description,
        manifest.tags,
        manifest.user,
        manifest.imported_from,
        training.experiment,
        training.trial,
        training.attempt,
        manifest.sources,
        step=manifest.step,
    )


encode_summary = msgspec.msgpack.Encoder().encode
decode_summary = msgspec.msgpack.Decoder(Summary).decode
