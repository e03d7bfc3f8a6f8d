"""`python -m cargobike.compat [--real NAME] script.py …`: run a program for older libraries as it is."""

from __future__ import annotations

import argparse
import sys

from cargobike.compat.as_is.running import run_as_is
from cargobike.core.errors import CargobikeError


def main(given: list[str]) -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m cargobike.compat",
        description="Run a script or notebook for an older library as it is: `import hops` … finds ours.",
        allow_abbrev=False,
    )
    parser.add_argument("--real", action="append", default=[], metavar="NAME", help="import this library as installed")
    parser.add_argument("script", help="a script (.py) or notebook (.ipynb)")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")
    asked = parser.parse_args(given)
    try:
        run_as_is(asked.script, asked.arguments, real=asked.real)
    except CargobikeError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
