"""`hops.user`: users of a Hopsworks cluster; each call says what stands in its place."""

from __future__ import annotations

from cargobike.compat.hops.translating.gone import no_longer

__all__ = ["create_user"]

_WHY = "There are no accounts here: the users are those of the machine or the storage."

create_user = no_longer("hops.user.create_user", _WHY)
