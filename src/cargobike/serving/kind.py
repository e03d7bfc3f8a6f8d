"""Deployments as a kind of thing that a project keeps."""

from __future__ import annotations

import re
from typing import Final

from cargobike.core.registering.kinds import Kind
from cargobike.serving.facts import SERVING_FACTS

DEPLOYMENTS: Final = Kind(
    name="deployment",
    folder="deployments",
    id=re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"),
    facts=SERVING_FACTS,
    left_out=frozenset({"driver.lock", "driver.lock.new", "secrets.json"}),
)
