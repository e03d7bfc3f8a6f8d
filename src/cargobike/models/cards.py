"""The card of a version: what is known of it, as a page in Markdown; a team can write its own instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cargobike.core.signatures import Field
from cargobike.core.values.times import on_calendar
from cargobike.core.values.words import number
from cargobike.models.record import FILES_ONLY, Manifest
from cargobike.models.signing import describe

if TYPE_CHECKING:
    from cargobike.models.facts import State


def make_card(manifest: Manifest, state: State) -> str:
    """Return a card that is made from what is known."""
    parts = [
        f"# {manifest.name}:{manifest.version}",
        _text(manifest.description),
        _about(manifest, state),
        _section("Metrics", _table(("metric", "value"), _metrics(manifest))),
        _section("Takes and returns", _signature(manifest)),
        _section("Made from", _origin(manifest)),
        _section("Parameters", _table(("parameter", "value"), manifest.training.params.items())),
        _section("Files", _table(("file", "bytes", "SHA-256"), _files(manifest))),
        _section("Use", _use(manifest)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(manifest: Manifest, state: State) -> str:
    rows = {
        "aliases": ", ".join(state.aliases_of(manifest.version)),
        "tags": ", ".join(state.tags_of(manifest.version, manifest.tags)),
        "flavour": manifest.flavour,
        "registered": f"{on_calendar(manifest.at):%Y-%m-%d %H:%M:%S} UTC"
        + (f" by {manifest.user}" if manifest.user else ""),
        "brought in from": manifest.imported_from,
        "fingerprint": manifest.fingerprint,
    }
    return _table(("", ""), ((name, value) for name, value in rows.items() if value))


def _metrics(manifest: Manifest) -> list[tuple[str, str]]:
    return [(name, number(value)) for name, value in sorted(manifest.figures.items())]


def _signature(manifest: Manifest) -> str:
    if manifest.signature is None:
        return ""
    return "\n".join(
        line
        for title, fields in (("takes", manifest.signature.inputs), ("returns", manifest.signature.outputs))
        for line in _fields(title, fields)
    )


def _fields(title: str, fields: tuple[Field, ...]) -> list[str]:
    return [f"- {title} `{describe(field).replace('`', '')}`" for field in fields]


def _origin(manifest: Manifest) -> str:
    training = manifest.training
    lines = [
        f"- {source.relation} {source.kind} `{_code(source.name)}{f':{source.version}' if source.version else ''}`"
        + (f" ({_text(source.detail)})" if source.detail else "")
        for source in manifest.sources
    ]
    lines += [f"- train function `{_code(training.function)}`"] if training.function else []
    lines += [f"- data `{_code(training.data)}`"] if training.data else []
    lines += [f"- commit `{_code(training.commit)}`"] if training.commit else []
    return "\n".join(lines)


def _files(manifest: Manifest) -> list[tuple[str, str, str]]:
    return [(file.path, f"{file.size_bytes:,}", file.sha256[:12]) for file in manifest.files]


def _use(manifest: Manifest) -> str:
    call = "load()" if manifest.flavour == FILES_ONLY else "predict(rows)"
    return f'```python\nfrom cargobike import models\n\nmodels.get("{manifest.name}:{manifest.version}").{call}\n```'


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _table(headings: tuple[str, ...], rows: Iterable[tuple[object, ...]] | Mapping[str, object]) -> str:
    lines = [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(headings)} |", f"|{' --- |' * len(headings)}", *lines])


def _cell(value: object) -> str:
    return _text(str(value)).replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _text(text: str) -> str:
    """Return text that is text in Markdown too: no HTML begins in it."""
    return text.replace("<", "&lt;").strip()
