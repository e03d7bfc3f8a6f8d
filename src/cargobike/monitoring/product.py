"""What monitoring registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="monitoring",
    title="Monitoring",
    extra="data",
    commands=(
        Command(
            "drift",
            "cargobike.monitoring.commands.drift",
            "Compare two tables; exit code 3 if the second does not look like the first.",
            after="features",
        ),
    ),
    kind="cargobike.monitoring.kind:MONITORS",
)
