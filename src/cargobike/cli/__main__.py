"""`python -m cargobike.cli`, for where the `cargobike` script is not on the path."""

from __future__ import annotations

from cargobike.cli.app import main

main()
