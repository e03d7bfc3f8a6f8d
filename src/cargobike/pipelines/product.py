"""What pipelines register."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Product

PRODUCT: Final = Product(name="pipelines", title="Pipelines")
