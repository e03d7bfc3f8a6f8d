"""The command line: what all commands share, and the commands `ui` and `version`.

Products register their own commands, one module for each, loaded when that command is called. Only commands print, and
only this room configures logging. Everything that a command shows is also available to programs.

Internal: public is the command `cargobike`.
"""

from __future__ import annotations

from cargobike.cli.app import main

__all__ = ["main"]
