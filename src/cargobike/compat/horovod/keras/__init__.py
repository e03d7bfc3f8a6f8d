"""Horovod for Keras 3, on any backend that it runs on here."""

from __future__ import annotations

from cargobike.compat.horovod._keras import names
from cargobike.compat.horovod._keras.names import *  # noqa: F403 - the two have the same names
from cargobike.compat.horovod.keras import callbacks, elastic

__all__ = [*names.__all__, "callbacks", "elastic"]  # noqa: PLE0604 - they are texts
