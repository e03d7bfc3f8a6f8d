"""What models registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="models",
    title="Models",
    commands=(
        Command(
            "models",
            "cargobike.models.commands.models",
            "Register, compare, promote and remove models.",
            after="features",
        ),
    ),
    models="cargobike.models.keeping",
    opened={"model": "cargobike.models.recovering:open_version"},
    edges="cargobike.models.tracing:edges",
    pages="cargobike.models.pages.section:model_section",
    thing_pages={"model": "/models/{name}/{version}"},
    afar="cargobike.models.commands.afar:AFAR",
)
