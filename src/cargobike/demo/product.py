"""What the demonstration registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="demo",
    title="Demonstration",
    commands=(Command("demo", "cargobike.demo.command", "Search a small neural network, to see how it goes."),),
    afar="cargobike.demo.afar:AFAR",
)
