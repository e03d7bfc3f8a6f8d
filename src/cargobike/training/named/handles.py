"""An operation on its way."""

from __future__ import annotations

import threading
from typing import Any

import torch

from cargobike.training.named.requests import Agreed, Request


class CollectiveError(RuntimeError):
    """Ranks disagree on an operation, or a rank that it needs is missing or gone; users get it as a front end's own."""


class Handle:
    """An operation on its way.

    Attributes:
        request: What it is.
        tensors: What it works on.
        answer: What all ranks agreed on; valid when it is done.
        results: One for each tensor; valid when it is done.
        error: Why it failed; empty if it did not.
    """

    __slots__ = ("_done", "answer", "error", "request", "results", "tensors")

    def __init__(self, request: Request, tensors: list[torch.Tensor]) -> None:
        self.request = request
        self.tensors = tensors
        self.results: list[Any] = []
        self.answer = Agreed(request)
        self.error = ""
        self._done = threading.Event()

    @property
    def key(self) -> tuple[int, str]:
        """What tells it from others on their way."""
        return self.request.of, self.request.name

    @property
    def is_done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._done.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has ended; returns whether it has."""
        return self._done.wait(timeout_s)

    def end(self, results: list[Any], error: str = "") -> None:
        """Say how it ended; only the first time counts."""
        if not self._done.is_set():
            self.results, self.error = results, error
            self._done.set()
