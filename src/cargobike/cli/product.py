"""The commands that the command line itself registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="cli",
    title="Command line",
    commands=(
        Command("ui", "cargobike.cli.ui", "Show experiments in a browser, live.", after="logs"),
        Command("lineage", "cargobike.cli.lineage", "Show what something came from, and what uses it.", after="ui"),
        Command("tokens", "cargobike.cli.tokens", "Give out tokens for the dashboard and its API.", after="ui"),
        Command("version", "cargobike.cli.version", "Print the version."),
    ),
    afar="cargobike.cli.afar:AFAR",
)
