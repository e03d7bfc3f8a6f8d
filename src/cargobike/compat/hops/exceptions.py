"""`hops.exceptions`: what scripts catch is what we raise."""

from __future__ import annotations

from cargobike.core.errors import CargobikeError, NotFoundError

__all__ = ["APIKeyFileNotFound", "FeatureDistributionsNotComputed", "RestAPIError", "UnkownSecretStorageError"]

RestAPIError = CargobikeError
UnkownSecretStorageError = CargobikeError
APIKeyFileNotFound = NotFoundError
FeatureDistributionsNotComputed = NotFoundError
