"""`hops.secret`: secrets of a Hopsworks user; each call says what stands in its place."""

from __future__ import annotations

from cargobike.compat.hops.translating.gone import no_longer

__all__ = ["create_secret", "delete_secret", "get_secret"]

_WHY = "Secrets are not kept here: read them from the environment, or with the client of your own store of secrets."

create_secret = no_longer("hops.secret.create_secret", _WHY)
delete_secret = no_longer("hops.secret.delete_secret", _WHY)
get_secret = no_longer("hops.secret.get_secret", _WHY)
