"""What the calls of hops (HopsML) are called here."""

from __future__ import annotations

from typing import Final

from cargobike.compat.hops.names import experiments, files, platform, stores
from cargobike.compat.translations import Translation

TRANSLATIONS: Final[tuple[Translation, ...]] = (
    *experiments.TRANSLATIONS,
    *files.TRANSLATIONS,
    *stores.TRANSLATIONS,
    *platform.TRANSLATIONS,
)
