"""What serving registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="serving",
    title="Serving",
    extra="serving",
    commands=(
        Command("serve", "cargobike.serving.commands.serve", "Serve a model until Ctrl-C, or in the background."),
        Command(
            "deployments",
            "cargobike.serving.commands.deployments",
            "List, release, scale and stop what is served.",
            after="serve",
        ),
    ),
    kind="cargobike.serving.kind:DEPLOYMENTS",
    edges="cargobike.serving.tracing:edges",
)
