"""Doing: the event loop that owns an experiment, and what it talks to."""
