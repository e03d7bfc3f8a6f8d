"""The process that has a model: loads it, warms it up, and answers one batch after the other."""

from __future__ import annotations
