"""`python -m cargobike.pipelines.scheduling PROJECT`: a scheduler with as little loaded as can be."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time

from cargobike.core.errors import CargobikeError
from cargobike.pipelines.scheduling.process.looking import LOOK_S
from cargobike.pipelines.scheduling.process.serving import serve
from cargobike.store.files import project


def main() -> int:
    """Be a scheduler until told to end."""
    parser = argparse.ArgumentParser(prog="python -m cargobike.pipelines.scheduling")
    parser.add_argument("project")
    parser.add_argument("--look-every-s", type=float, default=LOOK_S)
    parser.add_argument("--most-runs", type=int, default=0)
    given = parser.parse_args()
    try:
        project.use(given.project)
        serve(project.prepare(), _say, look_s=given.look_every_s, most_runs=given.most_runs)
    except CargobikeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _say(name: str, words: str) -> None:
    at = time.strftime("%Y-%m-%d %H:%M:%S")
    with contextlib.suppress(OSError):  # whoever read it is gone, or the disk of the log is full: go on without words
        sys.stdout.write(f"{at}  {name or 'scheduler'}  {words}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
