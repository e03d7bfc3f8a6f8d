"""`cargobike models`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cargobike.cli.printing import age, cell, console, moment, parameters, print_json, print_table, table, utc
from cargobike.core.errors import StoreError
from cargobike.core.registering.tracing import Thing
from cargobike.models import front
from cargobike.models.catalogue.summary import Summary
from cargobike.models.commands.changing import card, note, promote, register, rm, tag
from cargobike.models.commands.comparing import compare
from cargobike.models.commands.exchanging import export, import_
from cargobike.models.commands.naming import Json, OptionalName, Version
from cargobike.models.version import ModelVersion
from cargobike.store.files import project

models = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_SHOWN = 50


@models.command("ls")
def ls(
    name: OptionalName = "",
    everything: Annotated[
        bool, typer.Option("--all", help=f"All versions, not only the newest {_SHOWN}; also those that were removed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the models of the project, each in its newest version; or the versions of one model."""
    versions = front.list(name or None, removed=everything)
    shown = versions if everything or as_json or not name else versions[:_SHOWN]
    if as_json:
        print_json([_listed(version) for version in shown])
        return
    if not versions:
        console().print(f"There are no models in {project.current().root}.")
        return
    made = table("MODEL", "ALIASES", "METRICS", "FLAVOUR", "MB", "REGISTERED", "DESCRIPTION", right=("MB",))
    for version in shown:
        made.add_row(*_row(version, of_all=not name))
    print_table(made)
    if len(shown) < len(versions):
        console().print(f"{len(versions) - len(shown)} more; --all lists them.")


@models.command("show")
def show(version: Version, as_json: Json = False) -> None:
    """Show one version: what it is, what was measured, what it takes and came from, and whether its files are whole."""
    found = front.get(version)
    problems = found.verify()
    if as_json:
        moves = [_move(move) for move in front.history(found.name)]
        print_json({**found.as_json(), "problems": problems, "alias_history": moves})
        return
    out = console()
    out.print(cell(f"{found.reference}{''.join(f' @{alias}' for alias in found.aliases)}", "bold"))
    for line in _lines(found):
        out.print(cell(line))
    if found.metrics:
        print_table(_pairs("METRIC", "VALUE", sorted(found.metrics.items())))
    if found.signature is not None:
        from cargobike.models.signing import describe  # noqa: PLC0415 - needs NumPy, which lists do not

        fields = [("takes", field) for field in found.signature.inputs]
        fields += [("returns", field) for field in found.signature.outputs]
        print_table(_pairs("", "FIELD", [(word, describe(field)) for word, field in fields]))
    for one in found.notes:
        out.print(cell(f"{moment(one.at)} {one.by}: {one.text}"))
    out.print(cell(f"fingerprint {found.fingerprint}: {'; '.join(problems) or 'verified'}", "red" if problems else ""))
    if problems:
        raise typer.Exit(1)


@models.command("verify")
def verify(version: Version, as_json: Json = False) -> None:
    """Read all files of a version, and compare them with its fingerprint."""
    found = front.get(version)
    problems = found.verify()
    if as_json:
        print_json({"model": found.reference, "fingerprint": found.fingerprint, "problems": problems})
    else:
        for problem in problems:
            console().print(cell(problem, "red"))
        if not problems:
            console().print(cell(f"{found.reference} is whole: {found.fingerprint}"))
    if problems:
        raise typer.Exit(1)


models.command("register")(register)
models.command("promote")(promote)
models.command("compare")(compare)
models.command("export")(export)
models.command("import")(import_)
models.command("tag")(tag)
models.command("note")(note)
models.command("card")(card)
models.command("rm")(rm)


def _summary(version: ModelVersion) -> Summary:
    try:
        return version.summary
    except StoreError as error:
        return Summary(version.version, problem=str(error))


def _listed(version: ModelVersion) -> dict[str, Any]:
    summary = _summary(version)
    return {
        "name": version.name,
        "version": version.version,
        "aliases": version.aliases,
        "tags": [] if summary.problem else list(version.tags),
        "metrics": dict(summary.metrics),
        "flavour": summary.flavour,
        "size_bytes": summary.size_bytes,
        "registered_at": utc(summary.at),
        "user": summary.user,
        "description": summary.description,
        "fingerprint": summary.fingerprint,
        "experiment": summary.experiment,
        "trial": summary.trial,
        "is_imported": bool(summary.imported_from),
        "is_removed": version.is_removed,
        "problem": summary.problem,
    }


def _row(version: ModelVersion, *, of_all: bool) -> list[Any]:
    """Return the cells of a version; with `of_all` it stands for its model, and all aliases of that are named."""
    summary = _summary(version)
    aliases = version.aliases
    if of_all:
        aliases = [f"{alias} ({number})" for alias, number in sorted(version.all_aliases.items())]
    metrics = {name: float(value) for name, value in sorted(summary.metrics.items())}
    return [
        cell(version.reference, "bold"),
        cell(", ".join(aliases)),
        cell(parameters(metrics)),
        cell(summary.flavour),
        cell("removed" if version.is_removed else f"{summary.size_bytes / 1e6:.1f}"),
        cell(age(summary.at)),
        cell(summary.problem or summary.description, "red" if summary.problem else ""),
    ]


def _lines(version: ModelVersion) -> list[str]:
    training = version.training
    trial = "" if training.trial is None else f", trial {training.trial}"
    sources = [f"{one.relation} {Thing(one.kind, one.name, one.version)}" for one in version.sources]
    lines = [
        version.description,
        f"{version.flavour}, {version.size_bytes / 1e6:.1f} MB, registered {moment(version.at)} by {version.user}",
        f"brought in from {version.manifest.imported_from}" if version.is_imported else "",
        f"tags {', '.join(version.tags)}" if version.tags else "",
        f"made by experiment {training.experiment}{trial}" if training.experiment else "",
        f"parameters {parameters(training.params)}" if training.params else "",
        *(source for source in sources if not source.startswith("made from experiment")),
    ]
    return [line for line in lines if line]


def _pairs(left: str, right: str, rows: list[tuple[Any, Any]]) -> Any:
    made = table(left, right)
    for name, value in rows:
        made.add_row(cell(name), cell(f"{value:.6g}" if isinstance(value, float) else value))
    return made


def _move(move: Any) -> dict[str, Any]:
    return {
        "alias": move.alias,
        "version": getattr(move, "version", None),
        "before": move.before,
        "at": utc(move.at),
        "by": move.by,
        "when": getattr(move, "when", ""),
        "figures": getattr(move, "figures", {}),
    }
