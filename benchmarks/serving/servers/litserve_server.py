"""LitServe with its batching, which waits for a timer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import litserve
from mlp import Mlp


class Api(litserve.LitAPI):
    """Answers batches of rows."""

    def setup(self, device: str) -> None:
        """Make the model."""
        del device
        self.model = Mlp()

    def decode_request(self, request):  # LitServe reads annotations, and takes others for parameters of the address
        """Return the row."""
        return request["x"]

    def batch(self, inputs: list[Any]) -> list[Any]:
        """Keep rows as they are."""
        return inputs

    def unbatch(self, output: list[Any]) -> list[Any]:
        """Keep answers as they are."""
        return output

    def predict(self, x: Any) -> list[float]:
        """Answer rows."""
        answers: list[float] = self.model.predict(x).tolist()
        return answers

    def encode_response(self, output: float) -> dict[str, float]:
        """Return one answer."""
        return {"y": output}


if __name__ == "__main__":
    api = Api(max_batch_size=32, batch_timeout=0.001)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="warning")
