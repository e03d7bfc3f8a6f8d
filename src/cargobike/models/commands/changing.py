"""`cargobike models register | promote | tag | note | card | rm`: what changes a registry."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cargobike.cli.printing import cell, console, moment, print_json
from cargobike.cli.terminal import neutralized
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.registering.modelling import find_trial
from cargobike.core.values.words import number
from cargobike.models import front, registering
from cargobike.models.commands.naming import AliasName, Json, Name, Version, Yes
from cargobike.models.naming import read_reference


def register(
    name: Name,
    *,
    model: Annotated[
        str, typer.Option("--model", metavar="MODULE:NAME", help="A function, class or object: `predict.py:answer`.")
    ] = "",
    files: Annotated[
        list[str] | None, typer.Option("--file", metavar="PATH", help="A file or folder to keep; may be repeated.")
    ] = None,
    trial: Annotated[
        str, typer.Option("--trial", metavar="EXPERIMENT[/NUMBER]", help="A trial; without a number the best one.")
    ] = "",
    factory: Annotated[str, typer.Option("--factory", metavar="MODULE:NAME", help="Makes the module of torch.")] = "",
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", metavar="NAME=VALUE", help="What was measured; may be repeated.")
    ] = None,
    example: Annotated[
        Path | None, typer.Option("--example", metavar="FILE", help="A JSON file with a list of rows.")
    ] = None,
    description: Annotated[str, typer.Option("--description", help="A sentence.")] = "",
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="May be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Register a model as the next version of its name."""
    version = registering.register(
        name,
        _imported(model) if model else None,
        files=(files[0] if len(files) == 1 else files) if files else None,
        trial=find_trial(trial) if trial else None,
        factory=_imported(factory) if factory else None,
        metrics=_metrics(metrics or []),
        example=None if example is None else _rows(example),
        description=description,
        tags=tags or (),
    )
    if as_json:
        print_json(version.as_json())
    else:
        console().print(cell(f"{version.reference} ({version.flavour}, {version.fingerprint[:12]})"))


def promote(
    version: Version,
    alias: AliasName,
    when: Annotated[
        str, typer.Option("--when", help="The gate: 'accuracy >= champion.accuracy and latency_ms <= 20'.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Let an alias point at a version, if it passes a gate."""
    found = front.get(version)
    promotion = found.promote(alias, when=when)
    if as_json:
        print_json({"name": found.name, **{key: getattr(promotion, key) for key in promotion.__struct_fields__}})
        return
    before = f", was version {promotion.before}" if promotion.before else ""
    console().print(cell(f"{found.name}@{alias} is version {promotion.version} now{before}."))
    if promotion.figures:
        figures = {key: "unknown" if value is None else number(value) for key, value in promotion.figures.items()}
        console().print(cell(", ".join(f"{key} = {value}" for key, value in figures.items())))
    if promotion.remark:
        console().print(cell(f"{promotion.remark}."))


def tag(
    version: Version,
    tags: Annotated[list[str] | None, typer.Argument(metavar="TAG...", help="Tags to add.")] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Take a tag away; may be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Add tags to a version, take some away, or list them."""
    found = front.get(version)
    if tags or remove:
        found.tag(*(tags or ()), remove=remove or ())
    if as_json:
        print_json({"model": found.reference, "tags": found.tags})
    else:
        typer.echo(neutralized(f"{found.reference}: {', '.join(found.tags) or 'no tags'}"))


def note(
    version: Version,
    text: Annotated[str, typer.Argument(help="What to write down; left out, all notes are printed.")] = "",
    as_json: Json = False,
) -> None:
    """Write something down about a version, or print what was written."""
    found = front.get(version)
    if text.strip():
        found.note(text)
    if as_json:
        notes = [{"at": one.at, "by": one.by, "text": one.text} for one in found.notes]
        print_json({"model": found.reference, "notes": notes})
        return
    for one in found.notes[-1:] if text.strip() else found.notes:
        typer.echo(neutralized(f"{moment(one.at)} {one.by}: {one.text}"))
    if not found.notes:
        typer.secho(f"{found.reference} has no notes.", err=True, dim=True)


def card(
    version: Version,
    file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Replace it with a Markdown file; - for stdin.")
    ] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Go back to the card that is made from what is known.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the card of a version, or write it."""
    found = front.get(version)
    if file is not None and reset:
        raise typer.BadParameter("give either --from or --reset")
    if reset:
        found.write_card("")
    elif file is not None:
        found.write_card(_text(file))
    if as_json:
        print_json({"model": found.reference, "is_edited": found.is_card_edited, "card": found.card})
    else:
        typer.echo(neutralized(found.card), nl=False)


def rm(
    version: Annotated[
        str, typer.Argument(metavar="MODEL", help="`name:3`, an alias `name@old`, or a name with --keep.")
    ],
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, help="Remove all versions of a model but so many of the newest.")
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete the files of a version; what was known of it stays. Never what an alias or a deployment uses."""
    if as_json and not yes:
        raise typer.BadParameter("--json cannot ask; give --yes as well")
    wanted = read_reference(version)
    if keep is not None and (wanted.version or wanted.alias):
        raise typer.BadParameter(f"--keep is for all versions of a model: write {wanted.name}")
    what = f"all versions of {wanted.name} but the newest {keep}, and what is in use" if keep else str(wanted)
    if keep is None and not wanted.version and not wanted.alias:
        raise typer.BadParameter(f"name a version, such as {wanted.name}:1, or give --keep")
    if not yes:
        kind = "the alias" if wanted.alias else "the files of"
        typer.confirm(f"Remove {kind} {what}?", abort=True)
    if keep is not None:
        removed = front.retain(wanted.name, keep=keep)
    elif wanted.alias:
        front.remove_alias(wanted.name, wanted.alias)
        removed = [str(wanted)]
    else:
        front.remove(version)
        removed = [str(wanted)]
    if as_json:
        print_json({"removed": removed})
    else:
        console().print(cell(f"Removed {', '.join(removed) or 'nothing'}."))


def _metrics(words: list[str]) -> dict[str, float]:
    metrics, mistakes = {}, []
    for word in words:
        name, _, value = word.rpartition("=")
        try:
            metrics[name] = float(value)
        except ValueError:
            name = ""
        if not name:
            mistakes.append(f"{word!r} is no NAME=VALUE, such as accuracy=0.97")
    if mistakes:
        raise InvalidInputError("--metric cannot be understood:", mistakes)
    return metrics


def _rows(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"--example {file} cannot be read as JSON: {error}") from error


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file} cannot be read: {error}") from error


def _imported(path: str) -> Any:
    """Return what `module:name` or `file.py:name` names; the working directory is searched, too."""
    place, colon, name = path.rpartition(":")
    if not colon or not place or not name:
        raise InvalidInputError(f"{path!r} was given; write module:name or file.py:name.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if place.endswith(".py"):
        file = Path(place).resolve()
        if not file.is_file():
            raise InvalidInputError(f"There is no file {place}.")
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
    else:
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            raise InvalidInputError(f"{path!r} was given: {error}.") from error
    if not hasattr(module, name):
        raise InvalidInputError(f"{place} has no {name!r}.{nearest(name, vars(module))}")
    return getattr(module, name)
