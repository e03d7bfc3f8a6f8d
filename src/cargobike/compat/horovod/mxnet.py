"""Not here; says what stands in its place."""

from __future__ import annotations

from cargobike.core.errors import MissingLibraryError

raise MissingLibraryError(
    "horovod.mxnet is not here: "
    "MXNet is no longer developed. Move the model to torch or Keras and use horovod.torch or horovod.keras.",
    name="horovod.mxnet",
)
