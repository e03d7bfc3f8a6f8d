"""Cargobike, with everything on: checks of rows and answers, metrics, a token, and, if asked for, the inference log."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from mlp import Mlp, example_row

from cargobike import models, project, serving
from cargobike.core.signatures import Field, Signature


class Lazy:
    """Makes the model in the process that has it: torch's does not travel with a function."""

    def __init__(self) -> None:
        self._model: Mlp | None = None

    def __call__(self, rows: list[Any]) -> Any:
        """Answer rows."""
        self._model = self._model or Mlp()
        return self._model.predict(rows)


def main(port: int, token: str, log: bool) -> None:
    """Serve until standard input is closed."""
    with tempfile.TemporaryDirectory(prefix="served-") as folder:
        project.use(folder)
        signature = Signature((Field("x", "FP32", (28,)),), (Field("y", "FP32"),))
        models.register("mlp", Lazy(), signature=signature, example=[example_row()])
        deployment = serving.deploy("mlp", "mlp", port=port, token=token, log=log)
        try:
            sys.stdin.read()
        finally:
            deployment.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], log=sys.argv[3] == "log")
