"""What the front serves: the names and versions that callers may write, whether they are ready, what they take."""

from __future__ import annotations

from typing import Any

from cargobike.core.errors import nearest
from cargobike.serving.front.desk.problems import Problem, Refused
from cargobike.serving.front.hub import Hub
from cargobike.serving.front.protocols import open_inference


class Served:
    """Answers what callers of any protocol ask about models.

    Args:
        hub: Where rows are answered.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._names = (hub.specification.name, hub.model)

    def known_name(self, name: str) -> str:
        """Return a name if it is the deployment's or the model's; raises `Refused` if not."""
        if name not in self._names:
            words = f"There is no model {name[:80]!r} here.{nearest(name[:80], self._names)}"
            raise Refused(Problem(404, "no-such-model", words))
        return name

    def known_version(self, text: str | None) -> int:
        """Return the number of a version, 0 if any will do; raises `Refused` if it is no number."""
        if not text:
            return 0
        if not text.isdecimal() or len(text) > 9:
            raise Refused(Problem(404, "no-such-version", f"{text[:40]!r} is no version: versions are numbers."))
        return int(text)

    def is_ready(self, pinned: int = 0) -> bool:
        """Tell whether a request would meet a replica; none is to come when this front is about to end."""
        desk = self._hub.desk
        if self._hub.is_leaving:
            return False
        return pinned in desk.replicas.values() if pinned else desk.is_ready

    def metadata(self, name: str, pinned: int = 0) -> dict[str, Any]:
        """Return what a model takes and returns, as the Open Inference Protocol says it."""
        desk = self._hub.desk
        versions = [pinned] if pinned else sorted({*desk.routed, *desk.replicas.values()})
        return open_inference.metadata(name, versions, self._hub.codec(desk.version_for(0.0, pinned)))
