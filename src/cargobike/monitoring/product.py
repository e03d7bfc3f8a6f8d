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
        Command(
            "monitor",
            "cargobike.monitoring.commands.monitor",
            "Watch deployments: list, show, report, acknowledge, label, start, stop.",
            after="drift",
        ),
    ),
    kind="cargobike.monitoring.kind:MONITORS",
    edges="cargobike.monitoring.tracing:edges",
    triggers={"drifted": "cargobike.monitoring.triggering:look"},
    pages="cargobike.monitoring.pages.section:monitoring_section",
    thing_pages={"monitor": "/monitors/{name}"},
    opened={"monitor": "cargobike.monitoring.triggering:open_monitor"},
    afar="cargobike.monitoring.commands.afar:AFAR",
)
