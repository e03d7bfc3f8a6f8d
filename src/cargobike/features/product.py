"""What features registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="features",
    title="Features",
    extra="features",
    commands=(
        Command(
            "features",
            "cargobike.features.commands.features",
            "List, find, fill and look into feature groups.",
            after="data",
        ),
    ),
    views="cargobike.features.views.keeping",
    opened={
        "group": "cargobike.features.recovering:open_group",
        "view": "cargobike.features.recovering:open_view",
        "dataset": "cargobike.features.recovering:open_dataset",
        "dataset-part": "cargobike.features.recovering:open_part",
    },
    edges="cargobike.features.tracing:edges",
    followed={"group": "cargobike.features.following"},
    triggers={"changed": "cargobike.features.changes:look"},
    pages="cargobike.features.pages.section:features_section",
    thing_pages={
        "group": "/features/{name}?version={version}",
        "view": "/feature-views/{name}?version={version}",
        "dataset": "/training-datasets/{name}?version={version}",
    },
    afar="cargobike.features.commands.afar:AFAR",
)
