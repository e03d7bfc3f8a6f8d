"""Runs what a user would write into a file, as a user would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

SOURCES = str(Path(__file__).resolve().parents[2] / "src")


def environment() -> dict[str, str]:
    """Return this process's environment with Cargobike's sources importable."""
    path = os.pathsep.join(part for part in (SOURCES, os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path}


def run_script(folder: Path, text: str, name: str = "script.py") -> Any:
    """Write a script, run it in its folder, and return the JSON that its last line prints."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, name],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])
