"""Runs of pipelines as a kind of thing that a project keeps."""

from __future__ import annotations

import re
from typing import Final

from cargobike.core.registering.kinds import Kind
from cargobike.pipelines.facts import RUN_FACTS

RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,119}")
"""What a run may be called by the one who starts it."""

RUNS: Final = Kind(
    name="pipeline run",
    folder="runs",
    id=RUN_ID,
    facts=RUN_FACTS,
    left_out=frozenset({"driver.lock", "driver.lock.new", "processes.lock", "stop", "unsent", "remote.json"}),
    heads="run-heads",
)
