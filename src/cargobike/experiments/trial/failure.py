"""Failures in user code, as its author wants to read them: their own traceback, our frames cut away."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from types import TracebackType

from cargobike.core.errors import CargobikeError
from cargobike.core.package import PACKAGE_FOLDER

_OURS = PACKAGE_FOLDER + os.sep
_LONGEST = 60_000
_SYMPTOMS = {"DistNetworkError", "DistBackendError", "DistStoreError", "WaitError"}
_WORDS = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Connection refused",
    "Timed out waiting",
    "gloo/transport",
    "Socket closed",
    "Broken pipe",
    "coordination service",
)


def describe_exception(error: BaseException, launch_dir: str) -> tuple[str, str]:
    """Return the text to show, and a key that is equal for failures with the same cause."""
    trace = _without_our_frames(error.__traceback__)
    if isinstance(error, CargobikeError):
        trace = _up_to_our_frames(trace)
    if isinstance(error, SystemExit):
        text = f"SystemExit: the train function called sys.exit({error.code!r})"
        text = "".join(traceback.format_exception(type(error), error, trace)).rstrip() + "\n" + text
    else:
        text = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
    hint = _hint(error, launch_dir)
    if hint:
        text += f"\n{hint}"
    if len(text) > _LONGEST:
        half = _LONGEST // 2
        text = f"{text[:half]}\n[… {len(text) - _LONGEST} characters left out …]\n{text[-half:]}"
    last = trace
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    line = f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}" if last is not None else ""
    return text, f"{type(error).__qualname__}@{line}"


def is_symptom(error: BaseException) -> bool:
    """Tell whether an error says that another member of the gang is gone or stands still: the cause is there, not here.

    Frameworks have no common word for it: torch has classes of its own, gloo only texts.
    """
    seen: BaseException | None = error
    while seen is not None:
        is_foreign = not isinstance(seen, OSError)  # an OSError may come from sockets of the user's own
        if type(seen).__name__ in _SYMPTOMS or (is_foreign and any(words in str(seen) for words in _WORDS)):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """Drop the leading frames that are ours."""
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    return trace


def _up_to_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """End where the user called us wrongly: our message says why, our code would not."""
    if trace is None or _is_ours(trace):
        return None
    return TracebackType(_up_to_our_frames(trace.tb_next), trace.tb_frame, trace.tb_lasti, trace.tb_lineno)


def _is_ours(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_OURS)


def _hint(error: BaseException, launch_dir: str) -> str:
    """Explain the one mistake that a directory per trial invites."""
    name = getattr(error, "filename", None)
    if not isinstance(error, FileNotFoundError) or not isinstance(name, (str, os.PathLike)):
        return ""
    path = Path(name)
    there = Path(launch_dir) / path
    if path.is_absolute() or not there.exists():
        return ""
    return (
        f"Hint: {str(path)!r} exists in {launch_dir}, where the experiment was launched, but each trial works in a "
        f'directory of its own. Give the absolute path, or launch with working_directory="launch".'
    )
