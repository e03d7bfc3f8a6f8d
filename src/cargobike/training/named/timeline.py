"""Writes when operations were asked for, agreed on and done, as a trace that browsers show (`chrome://tracing`)."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from cargobike.training.named.requests import Agreed, Request


class Timeline:
    """One trace, kept in memory until it is stopped. Each operation has a row of its own."""

    def __init__(self, path: Path, rank: int) -> None:
        self._path, self._rank = path, rank
        self._began = time.perf_counter()
        self._rows: dict[str, int] = {}
        self._open: dict[str, str] = {}
        self._events: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def submitted(self, request: Request, rank: int) -> None:
        """Note that a rank has asked for an operation."""
        self._step(request.name, f"NEGOTIATE_{request.kind.upper()}", {"rank": rank})

    def agreed(self, agreed: Agreed) -> None:
        """Note that all ranks were told to do it."""
        self._step(agreed.request.name, agreed.request.kind.upper(), {"error": agreed.error} if agreed.error else {})

    def ended(self, request: Request) -> None:
        """Note that it is done."""
        with self._lock:
            self._close(request.name)

    def stop(self) -> None:
        """Write the file."""
        with self._lock:
            for name in list(self._open):
                self._close(name)
            names = [
                {"name": "process_name", "ph": "M", "pid": row, "args": {"name": name}}
                for name, row in self._rows.items()
            ]
            events = [*names, *self._events]
        self._path.write_text(json.dumps(events), encoding="utf-8")

    def _step(self, name: str, phase: str, arguments: dict[str, Any]) -> None:
        with self._lock:
            self._close(name)
            row = self._rows.setdefault(name, len(self._rows))
            self._open[name] = phase
            self._events.append(
                {"name": phase, "ph": "B", "pid": row, "tid": self._rank, "ts": self._now(), "args": arguments}
            )

    def _close(self, name: str) -> None:
        phase = self._open.pop(name, None)
        if phase is not None:
            row = self._rows[name]
            self._events.append({"name": phase, "ph": "E", "pid": row, "tid": self._rank, "ts": self._now()})

    def _now(self) -> float:
        return (time.perf_counter() - self._began) * 1e6
