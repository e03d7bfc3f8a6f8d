"""What projects on other machines register."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

PRODUCT: Final = Product(
    name="remote",
    title="Other machines",
    extra="ui",
    commands=(Command("mcp", "cargobike.remote.mcp.command", "Serve coding assistants: list, read, explain, launch."),),
    afar="cargobike.remote.mcp.afar:AFAR",
    pages="cargobike.remote.pages.section:remote_section",
)
