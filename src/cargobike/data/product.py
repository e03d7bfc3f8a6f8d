"""What data registers."""

from __future__ import annotations

from typing import Final

from cargobike.core.products import Product

PRODUCT: Final = Product(
    name="data",
    title="Data",
    kind="cargobike.data.kind:DATA",
    feeder="cargobike.data.materialize:materialize",
    pages="cargobike.data.pages.section:data_section",
)
