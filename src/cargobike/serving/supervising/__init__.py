"""Keeping a deployment alive: what decides (`policy/`), and the processes that carry it out."""
