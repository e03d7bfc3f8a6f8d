"""`hops.facets`: figures of data sets in a notebook; each call says what stands in its place."""

from __future__ import annotations

from cargobike.compat.hops.translating.gone import no_longer

__all__ = ["dive", "overview"]

_WHY = (
    "Google's Facets is no longer kept: cargobike features stats describes columns, and cargobike "
    "drift compares two tables."
)

dive = no_longer("hops.facets.dive", _WHY)
overview = no_longer("hops.facets.overview", _WHY)
