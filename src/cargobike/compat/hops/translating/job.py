"""The pipeline that each execution of a job is: one step, which runs a program."""

from __future__ import annotations

import shlex
import subprocess
import sys

from cargobike import pipelines


@pipelines.step
def program_run(program: str, arguments: str) -> int:
    """Run a script or notebook, with ours in place of older libraries, and return its exit status.

    Raises:
        CalledProcessError: If it fails.
    """
    command = [sys.executable, "-m", "cargobike.compat", program, *shlex.split(arguments)]
    return subprocess.run(command, check=True).returncode


def job(program: str, arguments: object = "") -> None:
    """Run a program as a step."""
    program_run(program, str(arguments))
