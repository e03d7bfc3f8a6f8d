"""Keep models: versions that never change, aliases that move, gates before they do."""

from __future__ import annotations

__all__: list[str] = []
