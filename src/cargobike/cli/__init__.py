"""Layer 4: the command line. One module for each command, loaded when that command is called.

The only room that prints and that configures logging. It holds no knowledge of its own: whatever a command
shows, the rooms below can tell a program too.

Internal: public is the command `cargobike`.
"""

from __future__ import annotations

from cargobike.cli.app import main

__all__ = ["main"]
