"""Pipelines: plain functions whose calls are steps, recorded, kept and not made twice. The names below are public."""

from __future__ import annotations

__all__: list[str] = []
