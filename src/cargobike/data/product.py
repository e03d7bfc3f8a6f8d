"""What data registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="data",
    title="Data",
    extra="data",
    commands=(
        Command("data", "cargobike.data.commands.data", "Write, list, check and remove tables of data.", after="rm"),
    ),
    kind="cargobike.data.kind:DATA",
    tables="cargobike.data.index.tables:TABLES",
    keeper="cargobike.data",
    opened={"table": "cargobike.data.tables.opening:open_in"},
    feeder="cargobike.data.feeding:describe",
    edges="cargobike.data.tracing:edges",
    triggers={"arrived": "cargobike.data.arrivals:look"},
    thing_pages={"table": "/data/{id}"},
    pages="cargobike.data.pages.section:data_section",
    afar="cargobike.data.commands.afar:AFAR",
)
