"""The commands that the command line itself registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="cli",
    title="Command line",
    commands=(
        Command("ui", "cargobike.cli.ui", "Show experiments in a browser, live.", after="logs"),
        Command("version", "cargobike.cli.version", "Print the version."),
    ),
)
