"""Deployments that are asked of a cluster, for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from cargobike.serving.kubernetes.asked import Asked
from cargobike.serving.specification import Scaling, Specification


def asked(version: int = 3, **more: Any) -> Asked:
    """Return a deployment `digits` of some version."""
    specification = Specification(name="digits", model="digits@champion", version=version, scaling=Scaling(most=4))
    names = {name for name in more if name in Specification.__struct_fields__}
    chosen = msgspec.structs.replace(specification, **{name: more.pop(name) for name in names})
    return Asked(specification=chosen, image=more.pop("image", f"registry.example/team/digits:{version}"), **more)
