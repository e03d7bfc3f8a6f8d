"""What the names of older libraries register."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="compat",
    title="Older libraries",
    commands=(
        Command("migrate", "cargobike.compat.commands.migrate", "Rewrite a script for an older library in our names."),
        Command("horovodrun", "cargobike.compat.commands.horovodrun", "Run a program for Horovod as several ranks."),
    ),
    afar="cargobike.compat.commands.afar:AFAR",
)
