"""What serving registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="serving",
    title="Serving",
    extra="serving",
    commands=(
        Command(
            "serve",
            "cargobike.serving.commands.serve",
            "Serve a model until Ctrl-C, in the background, or on Kubernetes.",
        ),
        Command(
            "deployments",
            "cargobike.serving.commands.deployments",
            "List, release, scale and stop what is served.",
            after="serve",
        ),
        Command(
            "kubernetes",
            "cargobike.serving.commands.kubernetes",
            "Look at, scale, roll back and delete deployments on a cluster.",
            after="deployments",
        ),
    ),
    kind="cargobike.serving.kind:DEPLOYMENTS",
    opened={"deployment": "cargobike.serving.recovering:open_deployment"},
    edges="cargobike.serving.tracing:edges",
    logs="cargobike.serving.inference_log.following",
    pages="cargobike.serving.pages.section:serving_section",
    thing_pages={"deployment": "/deployments/{name}"},
    afar="cargobike.serving.commands.afar:AFAR",
)
