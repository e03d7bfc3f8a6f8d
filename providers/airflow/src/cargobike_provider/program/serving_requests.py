"""Reads requests, does what they ask for one after the other, and answers.

The pipe that requests come from is a lifeline, too: when it closes while something runs, the task in Airflow was
killed, and what runs is ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

from .answers import NotPlainError, plain

GRACE_S: Final = 10.0
"""How long what runs may take to end after Airflow's side is gone."""

_ACTIONS: Final = {
    "function": "functions:run_function",
    "notebook": "notebooks:run_notebook",
    "experiment": "experiments:run_experiment",
    "pipeline": "pipeline_runs:run_pipeline",
    "register": "shipping:register_model",
    "deploy": "shipping:deploy_model",
    "roll": "shipping:roll_deployment",
    "look at experiment": "looks:look_at_experiment",
    "look at group": "looks:look_at_group",
    "look at trigger": "looks:look_at_trigger",
    "describe": "looks:describe_project",
}

Request = dict[str, Any]


def serve() -> int:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what users print goes where errors go: into the log of the task
    requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
    working, is_alone = threading.Event(), threading.Event()
    lines = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_read, args=(lines, requests, working, is_alone), daemon=True, name="requests").start()
    while (request := requests.get()) is not None:
        working.set()
        answer = _answer(request)
        working.clear()
        with contextlib.suppress(BrokenPipeError):
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        if answer.get("error", {}).get("kind") == "KeyboardInterrupt":
            if is_alone.is_set():
                _end_group()
            return 130
    return 0


def _read(
    lines: IO[str], requests: queue.SimpleQueue[Request | None], working: threading.Event, is_alone: threading.Event
) -> None:
    """Hand requests on; when there are no more, end what still runs."""
    for line in lines:
        requests.put(json.loads(line))
    requests.put(None)
    if working.is_set():
        nothing = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):  # their readers are gone, and printing must not keep anything from cleaning up
            os.dup2(nothing, stream)
        is_alone.set()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(GRACE_S)
        _end_group()


def _end_group() -> None:
    """End this process and what it started, except what was detached on purpose."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _answer(request: Request) -> dict[str, Any]:
    try:
        _prepare(request)
        module, _, name = _ACTIONS[request["do"]].partition(":")
        action: Callable[..., Any] = getattr(import_module(f".{module}", __package__), name)
        return {"value": plain(action(request["arguments"], request.get("origin") or {}))}
    except ModuleNotFoundError as error:
        if error.name == "cargobike":
            words = f"{sys.executable} has no Cargobike; install it there, or name another Python (python=…)."
            return {"error": {"kind": "MissingLibraryError", "message": words, "mistaken": True}}
        return {"error": _described(error)}
    except KeyboardInterrupt:
        return {"error": {"kind": "KeyboardInterrupt", "message": "It was interrupted.", "mistaken": False}}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's function raises is told
        return {"error": _described(error)}


def _prepare(request: Request) -> None:
    """Choose the project, and see to it that it is there."""
    for path in reversed(request.get("paths") or ()):
        if path not in sys.path:
            sys.path.insert(0, path)
    from cargobike import project  # noqa: PLC0415 - in this Python there may be none, which is told in words
    from cargobike.errors import NotFoundError  # noqa: PLC0415

    url = request["project"]
    os.environ["CARGOBIKE_PROJECT"] = url  # for what is started from here
    project.use(url)
    is_folder = "://" not in url or url.lower().startswith("file://")
    root = project.current().root
    if request.get("create"):
        project.prepare()
    elif is_folder and not (root / "experiments").is_dir():
        near = _nearest_folder(root)
        raise NotFoundError(
            f"There is no project in {root}.{near} Correct the connection, or say create_project=True (extra "
            '"create_project": true) to have it made.',
            wanted=url,
        )


def _nearest_folder(root: Path) -> str:
    """Say which projects lie beside a folder that is none."""
    try:
        beside = sorted(path.parent.name for path in root.parent.glob("*/experiments"))[:5]
    except OSError:
        return ""
    return f" Beside it there is {', '.join(beside)}." if beside else ""


def _described(error: BaseException) -> dict[str, Any]:
    """Return an error as plain data, and print the user's own traceback into the log of the task."""
    here = Path(__file__).parent
    kind = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if Path(frame.filename).parent != here]
    ours = getattr(sys.modules.get("cargobike.errors"), "CargobikeError", ())
    is_ours = isinstance(error, ours)
    theirs = str(getattr(error, "traceback", "") or "")  # of a trial, which failed in yet another process
    if theirs:
        print(theirs, file=sys.stderr, flush=True)  # noqa: T201
    elif not is_ours:
        cause = error.__cause__ or error.__context__
        above = "".join(traceback.format_exception(cause)) + "\nThen:\n\n" if cause is not None else ""
        trace = "Traceback (most recent call last):\n" + "".join(traceback.format_list(mine))
        print(above + trace + "".join(traceback.format_exception_only(error)), file=sys.stderr, flush=True)  # noqa: T201
    mistaken = kind == "NotPlainError" or (is_ours and isinstance(error, ValueError | LookupError | ImportError))
    return {"kind": kind, "message": str(error) or kind, "mistaken": mistaken}


__all__ = ["NotPlainError", "serve"]
