"""What pipelines register."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="pipelines",
    title="Pipelines",
    commands=(
        Command(
            "pipelines",
            "cargobike.pipelines.commands.pipelines",
            "Run, resume, watch and cancel pipelines.",
        ),
    ),
    kind="cargobike.pipelines.kind:RUNS",
    list_names="cargobike.pipelines.commands.naming:list_names",
)
