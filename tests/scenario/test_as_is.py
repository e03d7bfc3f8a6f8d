"""A program for an older library runs without a change, with its workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import multiprocessing, subprocess, sys
import maggy.names
from cargobike import experiment

def train(x):
    import hops.names
    return x if hops.names.__name__ == "cargobike.compat.hops.names" else -1

def child(answers):
    import horovod.names
    answers.put(horovod.names.__name__)

if __name__ == "__main__":
    print(sys.argv[1:], __file__, maggy.names.__name__)
    print(experiment.launch(train, {"x": [1, 2]}, workers=1, quiet=True).best.value)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=child, args=(answers,))
    process.start()
    print(answers.get(timeout=60))
    process.join(60)
    raise OSError("at the end")
"""


def test_a_program_and_all_that_it_starts_find_ours(tmp_path: Path) -> None:
    script = tmp_path / "old.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "cargobike.cli", "run", "--as-is", str(script), "--", "--epochs", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False)
    assert done.stdout.splitlines() == [
        f"['--epochs', '3'] {script} cargobike.compat.maggy.names",
        "2.0",
        "cargobike.compat.horovod.names",
    ], done.stderr
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "OSError: at the end"
    assert "running.py" not in done.stderr
