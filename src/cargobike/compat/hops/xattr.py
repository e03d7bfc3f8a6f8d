"""`hops.xattr`: attributes of files; each call says what stands in its place."""

from __future__ import annotations

from cargobike.compat.hops.translating.gone import no_longer

__all__ = ["get_xattr", "remove_xattr", "set_xattr"]

_WHY = (
    "Files have no attributes here: tag experiments (result.add_tag), models (models.tag) and features "
    "instead, or write a file beside."
)

get_xattr = no_longer("hops.xattr.get_xattr", _WHY)
remove_xattr = no_longer("hops.xattr.remove_xattr", _WHY)
set_xattr = no_longer("hops.xattr.set_xattr", _WHY)
