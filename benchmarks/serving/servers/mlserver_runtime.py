"""MLServer: a runtime for the Open Inference Protocol, in the process of the server."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mlp import Mlp
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Runtime(MLModel):
    """Answers requests of one row."""

    async def load(self) -> bool:
        """Make the model."""
        self.mlp = Mlp()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Answer one request."""
        rows = NumpyCodec.decode_input(payload.inputs[0])
        answers = self.mlp.predict(rows)
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("y", answers)])
