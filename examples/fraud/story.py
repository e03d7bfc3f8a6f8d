"""The whole way, in one project: raw data, features, search, model, serving, monitoring, retraining.

    python examples/fraud/story.py            # two million transactions; some minutes on two cores
    python examples/fraud/story.py --quick    # the same story, small
    python examples/fraud/story.py --keep     # leaves the deployment and its watcher running
    python examples/fraud/story.py --engine spark --project s3://team/fraud

`make story` does the first, in an environment of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sys
from pathlib import Path

from chapters import FULL, HISTORY, QUICK, Story, use
from guarding import guarded
from learning import DEPLOYMENT

PORT = 8520


def main() -> None:
    """Tell the story."""
    options = read_options()
    size = QUICK if options.quick else FULL
    if options.rows:
        size = dataclasses.replace(size, rows_a_day=max(2000, options.rows // HISTORY))
    days = options.days or size.usual_days
    size = dataclasses.replace(size, usual_days=days, learn_days=days, judge_days=days)
    where = options.project.rstrip("/")
    beside = where.rpartition("/")[2] if "://" in where else where
    delivered = Path(options.delivered or f"{beside}-delivered").absolute()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with guarded(options.project, delivered, keep=options.keep):
            use(options.project)
            tell(Story(size, delivered, engine=options.engine, seed=options.seed))
    except (KeyboardInterrupt, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "interrupted" not in str(error):  # DuckDB's word for Ctrl-C
            raise
        print("\nInterrupted. Nothing is left running; the next time it begins anew.", file=sys.stderr)
        sys.exit(130)
    print_end(options.project, keep=options.keep)


def tell(story: Story) -> None:
    """Tell all chapters, in the project in use."""
    story.deliver()
    story.learn()
    story.live()
    story.change()
    story.retrain()
    story.judge()
    story.go_back()
    story.trace()


def print_end(where: str, *, keep: bool) -> None:
    """Say how to look at what the story has left."""
    program = Path(sys.executable).parent / "cargobike"
    if program.is_relative_to(Path.cwd()):
        program = program.relative_to(Path.cwd())
    cargobike = f"{program if program.exists() else 'cargobike'} --project {where}"
    print("\nSee all of it, with figures and links from each thing to what it came from:")
    print(f"  {cargobike} ui --port {PORT}")
    print(f"and open http://127.0.0.1:{PORT}/ in a browser.")
    if keep:
        print("The deployment and its watcher go on; these end them:")
        print(f"  {cargobike} monitor stop {DEPLOYMENT}")
        print(f"  {cargobike} deployments stop {DEPLOYMENT}")


def read_options() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", default="fraud-story", help="a folder or an address, such as s3://team/fraud")
    parser.add_argument("--delivered", default="", help="the folder of the bank's files; beside the project by default")
    parser.add_argument("--rows", type=int, default=0, help="how many transactions; two million by default")
    parser.add_argument("--days", type=int, default=0, help="how many days pass before something changes; 2 by default")
    parser.add_argument("--quick", action="store_true", help="a small story, in a minute or two")
    parser.add_argument("--engine", default="local", help="where trials run: local, spark, or the address of a master")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", action="store_true", help="leave the deployment and its watcher running")
    return parser.parse_args()


if __name__ == "__main__":
    main()
