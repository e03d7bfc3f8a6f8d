"""What the calls of Horovod are called here."""

from __future__ import annotations

from typing import Final

from cargobike.compat.horovod.names_keras import KERAS
from cargobike.compat.horovod.names_run import RUN
from cargobike.compat.horovod.names_torch import TORCH
from cargobike.compat.translations import Translation

TRANSLATIONS: Final[tuple[Translation, ...]] = (*TORCH, *RUN, *KERAS)
