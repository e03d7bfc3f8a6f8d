"""For packages that add a product of their own to Cargobike: its commands, pages, tables and journals.

A product is described by a `Product`, which an entry point in the group `cargobike.products` names.
"""

from __future__ import annotations

from cargobike.core.registering.products import Command, Product

__all__ = ["Command", "Product"]
