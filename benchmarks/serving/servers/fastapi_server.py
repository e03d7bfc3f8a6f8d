"""FastAPI under uvicorn, as its documentation shows: rows are checked by pydantic; no token, no metrics, no log."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import uvicorn
from fastapi import FastAPI
from mlp import Mlp
from pydantic import BaseModel


class Row(BaseModel):
    """One row."""

    x: list[float]


app = FastAPI()
model = Mlp()


@app.post("/predict")
async def predict(row: Row) -> dict[str, float]:
    """Answer one row."""
    return {"y": float(model.predict([row.x])[0])}


@app.get("/healthz")
async def health() -> str:
    """Say that it runs."""
    return "ok"


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
