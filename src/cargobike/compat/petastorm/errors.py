"""What petastorm raised, as errors of ours that are also the types that it promised."""

from __future__ import annotations

from cargobike.core.errors import InvalidInputError, StoreError


class NoDataAvailableError(InvalidInputError):
    """There is nothing to read: fewer row groups than shards, or none at all."""


class PetastormMetadataError(StoreError, RuntimeError):
    """The metadata of a data set is missing, or broken."""


class PetastormMetadataGenerationError(StoreError, RuntimeError):
    """The metadata of a data set could not be written."""


class DecodeFieldError(InvalidInputError, RuntimeError):
    """A value cannot be decoded by the codec of its field."""


class UnsortedRowsError(InvalidInputError, NotImplementedError):
    """Rows are not sorted by time, and windows of them cannot be formed."""


class UnfinishedError(InvalidInputError, NotImplementedError):
    """A reader cannot begin anew before all of its rows were taken."""


class StoppedError(InvalidInputError, RuntimeError):
    """A reader was stopped, and then asked for a row."""
