"""What the benchmark registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="bench",
    title="Benchmark",
    commands=(
        Command("bench", "cargobike.bench.command", "Measure how fast this machine, or cluster, trains.", after="rm"),
    ),
    afar="cargobike.bench.afar:AFAR",
)
