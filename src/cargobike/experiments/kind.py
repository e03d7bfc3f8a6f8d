"""Experiments as a kind of thing that a project keeps."""

from __future__ import annotations

import re
from typing import Final

from cargobike.core import layout
from cargobike.core.facts import EXPERIMENT_FACTS
from cargobike.core.ids import EXPERIMENT_ID
from cargobike.core.registering.kinds import Kind

EXPERIMENTS: Final = Kind(
    name="experiment",
    folder=layout.EXPERIMENTS,
    id=EXPERIMENT_ID,
    facts=EXPERIMENT_FACTS,
    left_out=frozenset({"driver.lock", "stop", "tensorboard", "code/unpacked", "remote.json", "unsent"}),
    on_demand=re.compile(rf"{layout.TRIALS}/[^/]+/{layout.CHECKPOINTS}(/|$)"),
    heads="heads",
)
