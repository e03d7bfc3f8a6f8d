"""What sharing registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="sharing",
    title="Sharing",
    extra="sharing",
    commands=(
        Command(
            "share",
            "cargobike.sharing.commands.share",
            "Publish, find and get datasets and models in a private network.",
            after="pipelines",
        ),
    ),
    edges="cargobike.sharing.tracing:edges",
    pages="cargobike.sharing.pages.section:sharing_section",
    thing_pages={"publication": "/shared/{id}"},
    afar="cargobike.sharing.commands.afar:AFAR",
)
