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
            "Run, resume, watch, schedule and cancel pipelines.",
        ),
        Command("scheduler", "cargobike.pipelines.commands.scheduler", "Run what is scheduled.", after="pipelines"),
    ),
    kind="cargobike.pipelines.kind:RUNS",
    edges="cargobike.pipelines.tracing:edges",
    thing_pages={"pipeline": "/pipelines/runs/{version}"},
    pages="cargobike.pipelines.pages.section:pipeline_section",
    list_names="cargobike.pipelines.commands.naming:list_names",
    afar="cargobike.pipelines.commands.afar:AFAR",
)
