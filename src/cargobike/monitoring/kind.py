"""Monitors as a kind of thing that a project keeps."""

from __future__ import annotations

import re
from typing import Final

from cargobike.core.registering.kinds import Kind
from cargobike.monitoring.facts import MONITOR_FACTS

MONITORS: Final = Kind(
    name="monitor",
    folder="monitors",
    id=re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"),
    facts=MONITOR_FACTS,
    left_out=frozenset({"driver.lock", "driver.lock.new", "stop", "unsent", "remote.json", "watcher.log"}),
    heads="monitor-heads",
)
