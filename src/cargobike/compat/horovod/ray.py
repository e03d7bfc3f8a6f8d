"""Not here; says what stands in its place."""

from __future__ import annotations

from cargobike.core.errors import MissingLibraryError

raise MissingLibraryError(
    "horovod.ray is not here: "
    "start ranks with cargobike.experiment.allreduce(function, workers=n), on this machine or on Spark.",
    name="horovod.ray",
)
