"""The descriptors that a host process inherits from the process that starts it."""

from __future__ import annotations

CONTROL_FD = 3
"""The socket over which it gets orders."""

DRIVER_FD = 4
"""Becomes readable when the process that started it has ended.

It is a pidfd: unlike the closing of a pipe or a socket, no copy of that process can hold it up.
"""
