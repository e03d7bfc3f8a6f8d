"""The threads of loaders, which end a moment after whatever they were reading for was closed."""

from __future__ import annotations

import gc
import threading


def loader_threads() -> list[threading.Thread]:
    """Return those that live."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("cargobike-loader")]


def expect_threads_to_end() -> None:
    """Wait for what the threads of closed loaders are doing; they begin nothing new."""
    gc.collect()
    for thread in loader_threads():
        thread.join(60)
        assert not thread.is_alive(), thread.name
