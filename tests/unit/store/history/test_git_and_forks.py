"""Asking git does not wait for copies of this process that another thread makes meanwhile."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support import programs
from support.scripts import run_script


def test_copies_made_meanwhile_do_not_delay_an_answer(tmp_path: Path) -> None:
    programs.require("git")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    answers, copies = run_script(
        tmp_path,
        """
        import json, os, signal, threading, time, warnings
        from pathlib import Path
        from cargobike.store.history.git_state import read_git

        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
        copies, answers = [], []

        def ask():
            for _ in range(10):
                answers.append(read_git(Path.cwd()) is not None)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        while asking.is_alive() and len(copies) < 150:
            if (pid := os.fork()) == 0:
                time.sleep(600)
                os._exit(0)
            copies.append(pid)
            asking.join(0.001)
        asking.join(30)
        answered = list(answers)
        for pid in copies:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        print(json.dumps([answered, len(copies)]))
        """,
    )
    assert answers == [True] * 10
    assert copies > 1
