"""Deciding: a pure scheduler, events in and commands out; no clock, no socket, no thread."""
