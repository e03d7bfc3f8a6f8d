"""Who is let in, whose turn it is, and what becomes of requests whose replica is lost; pure."""

from __future__ import annotations
