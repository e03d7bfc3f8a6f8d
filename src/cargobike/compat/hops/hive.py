"""`hops.hive`: the Hive of a Hopsworks cluster; each call says what stands in its place."""

from __future__ import annotations

from cargobike.compat.hops.translating.gone import no_longer

__all__ = ["setup_hive_connection"]

_WHY = "There is no Hive here: features are read with features.group(name).read(), tables with data.open(name)."

setup_hive_connection = no_longer("hops.hive.setup_hive_connection", _WHY)
