"""Failures in user code, as its author wants to read them: their own traceback, our frames cut away."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from cargobike.core.errors import CargobikeError
from cargobike.core.package import PACKAGE_FOLDER
from cargobike.core.values.information import to_text

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
    """Return the text to show, and a key that is equal for failures with the same cause; never raises.

    What users raise may itself raise when it is looked at: then class and traceback are shown, which always exist.
    """
    trace = _without_our_frames(_attribute(error, "__traceback__"))
    try:
        text = _usual_text(error, trace)
    except BaseException as problem:  # noqa: BLE001 - exceptions of users may do anything when they are looked at
        text = _plain_text(error, trace, problem)
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
    return to_text(text), to_text(f"{_class_name(error)}@{line}")


def is_symptom(error: BaseException) -> bool:
    """Tell whether an error says that another member of the gang is gone or stands still: the cause is there, not here.

    Frameworks have no common word for it: torch has classes of its own, gloo only texts.
    """
    seen: BaseException | None = error
    looked_at: set[int] = set()  # causes may form a circle
    while seen is not None and id(seen) not in looked_at:
        looked_at.add(id(seen))
        is_foreign = not issubclass(type(seen), OSError)  # an OSError may come from sockets of the user's own
        if _class_name(seen) in _SYMPTOMS or (is_foreign and any(words in _message_of(seen) for words in _WORDS)):
            return True
        seen = _attribute(seen, "__cause__") or _attribute(seen, "__context__")
    return False


def _usual_text(error: BaseException, trace: TracebackType | None) -> str:
    if isinstance(error, CargobikeError):
        trace = _up_to_our_frames(trace)
    text = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
    if isinstance(error, SystemExit):
        text += f"\nSystemExit: the train function called sys.exit({error.code!r})"
    return text


def _plain_text(error: BaseException, trace: TracebackType | None, problem: BaseException) -> str:
    """Describe an exception without asking it anything but its message."""
    frames = "".join(traceback.format_tb(trace))
    message = _message_of(error) or "(no message)"
    return (
        f"Traceback (most recent call last):\n{frames}{_class_name(error)}: {message}\n"
        f"(More cannot be shown: looking at this exception raised {_class_name(problem)}.)"
    )


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - `__str__` of a user's class may do anything
        return ""


def _class_name(error: BaseException) -> str:
    """Return the name of its class, also of one that does not want to be looked at."""
    return str(type.__dict__["__qualname__"].__get__(type(error)))


def _attribute(error: BaseException, name: str) -> Any:
    """Return what the interpreter itself keeps in an exception, whatever its class makes of the name."""
    return BaseException.__dict__[name].__get__(error)


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
    try:
        if not isinstance(error, FileNotFoundError):
            return ""
        path = Path(error.filename)
        there = Path(launch_dir) / path
        if path.is_absolute() or not there.exists():
            return ""
    except Exception:  # noqa: BLE001 - it may name no file, or none that can exist
        return ""
    return (
        f"Hint: {str(path)!r} exists in {launch_dir}, where the experiment was launched, but each trial works in a "
        f'directory of its own. Give the absolute path, or launch with working_directory="launch".'
    )
