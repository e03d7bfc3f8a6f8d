"""What projects on other machines register."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Product

PRODUCT: Final = Product(
    name="remote",
    title="Other machines",
    extra="ui",
    pages="cargobike.remote.pages.section:remote_section",
)
