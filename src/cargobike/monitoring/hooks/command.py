"""Run a program with an alarm on its standard input; no shell, so nothing in an alarm can become a command."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.monitoring.facts import Hooks

_TIMEOUT_S: Final = 60.0


def check_command(command: Sequence[str]) -> None:
    """Refuse what cannot be run.

    Raises:
        InvalidInputError: If it is no list of words, or there is no such program.
    """
    if isinstance(command, str) or not command or not all(str(word) == word for word in command):
        raise InvalidInputError(
            f"command={command!r} was given; give the program and its arguments as a list: ['notify-send', 'drift']."
        )
    if shutil.which(command[0]) is None:
        raise InvalidInputError(f"There is no program {command[0]!r} here; give its path.")


def run_command(hooks: Hooks, message: dict[str, Any]) -> None:
    """Run a program, and wait until it has ended.

    Raises:
        OSError: If it cannot be run, fails, or takes longer than a minute.
    """
    with subprocess.Popen(
        list(hooks.command),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as popen:
        try:
            _, words = popen.communicate(msgspec.json.encode(message), timeout=_TIMEOUT_S)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(popen.pid, signal.SIGKILL)
            popen.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"{hooks.command[0]} has not ended after {_TIMEOUT_S:g} s") from error
            raise
    if popen.returncode:
        said = words.decode("utf-8", "replace").strip().splitlines()
        raise OSError(f"{hooks.command[0]} ended with code {popen.returncode}{': ' + said[-1][:200] if said else ''}")
