"""A venv for each peer, made on demand, so that no peer's dependencies meet ours or another's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "optuna": ("optuna",),
    "ray": ("ray[tune]",),
    "ray-train": ("torch==2.13.0", "ray[train]"),
    "syne-tune": ("syne-tune",),
    "mlflow": ("mlflow",),
    "optuna-dashboard": ("optuna-dashboard",),
    "petastorm": (
        "setuptools<70",
        "pyarrow==12.0.1 numpy<2 pandas<2 dill diskcache future packaging psutil pyspark==3.5.1 pyzmq six fsspec",
        "opencv-python-headless<4.10",
        "typing_extensions sympy networkx jinja2 filelock",
        "--no-deps petastorm==0.13.1 torch==2.13.0",  # they disagree about setuptools, which neither needs to run
    ),
    "feast": ("feast[duckdb]",),
    "hf-datasets": ("torch==2.13.0 datasets webdataset",),
    "ray-data": ("torch==2.13.0 ray[data]",),
    "fastapi": ("torch==2.13.0 fastapi uvicorn[standard] numpy",),
    "mlserver": ("torch==2.13.0 mlserver==1.7.1 numpy",),
    "litserve": ("torch==2.13.0 litserve==0.2.19 numpy",),
    "bentoml": ("torch==2.13.0 bentoml==1.4.39 numpy",),
    "alibi-detect": ("alibi-detect==0.13.0",),
    "frouros": ("frouros==0.9.0",),
    "evidently": ("evidently==0.7.23 pandas<3 numpy<2.3",),  # does not import beside pandas 3
    "river": ("river==0.26.1",),
    "prefect": ("prefect==3.4.25 fastapi<0.119",),
    "dagster": ("dagster==1.12.2",),
    "apache-airflow": ("apache-airflow==3.3.2",),
    "libtorrent": ("libtorrent==2.1.1",),
    "hyperopt": ("setuptools<80", "hyperopt", "pyspark==4.3.0"),
}
"""What each needs, installed one after the other."""


def python_of(peer: str, root: Path) -> Path:
    """Return the interpreter of a peer's venv, made and filled first if it is not there.

    Raises:
        subprocess.CalledProcessError: pip could not install it.
    """
    folder = root / ".venvs" / peer
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        print(f"making a venv for {peer} in {folder} (once)", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for requirement in REQUIREMENTS[peer]:
            subprocess.run([*pip, *requirement.split()], check=True)
        done.touch()
    return python


def version_of(peer: str, python: Path) -> str:
    """Return the version of a peer that its venv holds."""
    code = f"import importlib.metadata as m; print(m.version({peer!r}))"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()
