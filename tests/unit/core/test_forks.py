"""What happens in a forked process: everything that libraries ask for, or what a worker needs of it."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import os, sys
assert not {"random", "threading", "logging"} & set(sys.modules), "they would have registered already"
from cargobike.core.running.forks import fork, take_over
take_over()
import logging, random, threading
called = []
os.register_at_fork(before=lambda: called.append("before"), after_in_child=lambda: called.append("in child"),
                    after_in_parent=lambda: called.append("in parent"))
random.seed(7)
state = random.getstate()
for way in (fork, os.fork, fork):
    called.clear()
    if (pid := way()) == 0:
        thread = threading.Thread(target=lambda: print(end="thread "))
        thread.start()
        thread.join()
        print(way.__name__, way is fork, random.getstate() == state, *called, flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert called == ["before", "in parent"]
for wrong in ({}, {"before": 3}):
    try:
        os.register_at_fork(**wrong)
    except TypeError:
        print("refused")
"""


def test_our_forks_leave_out_what_threads_need_and_all_others_do_not() -> None:
    said = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout.splitlines() == [
        "thread fork True True before in child",
        "thread fork False False before in child",
        "thread fork True True before in child",
        "refused",
        "refused",
    ]
