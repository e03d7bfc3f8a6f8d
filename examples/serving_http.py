"""Serve a function, and ask it over HTTP in three protocols, in pieces, and wrongly.

python examples/serving_http.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import httpx

from cargobike import models, project, serving


class Words:
    """Answers with how many words a text has; piece by piece, with the words."""

    def __call__(self, rows: list[str]) -> list[int]:
        """Count the words of each text."""
        return [len(row.split()) for row in rows]

    def stream(self, row: str) -> Iterator[Any]:
        """Yield the words one by one."""
        yield from row.split()


def main() -> None:
    """Serve, ask, stop."""
    with tempfile.TemporaryDirectory() as folder:
        project.use(folder)
        serve()


def serve() -> None:
    """Ask a deployment."""
    models.register("words", Words(), example=["two words"])
    deployment = serving.deploy("words", "words")
    with httpx.Client(base_url=deployment.url) as client:
        print("one row   ", client.post("/predict", json="a text of six words here").json())
        print("two rows  ", client.post("/predict", json=["one", "and two"]).json())
        print("KServe v1 ", client.post("/v1/models/words:predict", json={"instances": ["one"]}).json())
        described = client.get("/v2/models/words").json()
        name = described["inputs"][0]["name"] if described["inputs"] else "text"
        tensor = {"name": name, "shape": [2], "datatype": "BYTES", "data": ["one", "and two"]}
        print("KServe v2 ", client.post("/v2/models/words/infer", json={"inputs": [tensor]}).json()["outputs"])
        print("pieces    ", client.post("/predict?stream", json="piece by piece").text.split())
        print("a mistake ", client.post("/predict", content=b"{").json()["error"])
    deployment.stop()


if __name__ == "__main__":
    main()
