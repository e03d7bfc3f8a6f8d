"""Programs as they are written for `torchrun`, run as gangs without a change."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cargobike import experiment, trial
from cargobike.core.errors import TrialFailedError
from support.scripts import run_script

PROGRAMS = Path(__file__).resolve().parents[1] / "support" / "torchrun_programs"


def _leave_in_good_order() -> None:
    trial.barrier()
    if trial.rank == 0:
        sys.exit(0)
    if trial.rank == 1:
        sys.exit()
    raise SystemExit(False)


def test_a_rank_that_ends_by_sys_exit_zero_has_succeeded() -> None:
    run = experiment.allreduce(_leave_in_good_order, workers=3, quiet=True)
    assert (run.counts, run.value, run.values) == ({"completed": 1}, None, [None, None, None])


def _main() -> object:
    trial.barrier()
    return {0: "out/model.pt", 1: {"epochs": 3, "history": [0.5, 0.25]}}.get(trial.rank, object())


def test_what_a_main_function_returns_does_not_fail_it() -> None:
    run = experiment.allreduce(_main, workers=3, quiet=True)
    assert (run.counts, run.value, run.values) == ({"completed": 1}, None, [None, {"epochs": 3.0}, None])
    assert run.trials[0].extras == experiment.load(run.id).trials[0].extras == {"returned": "out/model.pt"}


def _leave_otherwise(code: Any) -> None:
    if trial.rank == 1:
        sys.exit(code)
    trial.barrier()


@pytest.mark.parametrize(
    ("code", "said"), [(3, r"sys\.exit\(3\)"), ("no data", r"SystemExit: no data"), (True, r"sys\.exit\(True\)")]
)
def test_any_other_exit_is_a_failure_with_its_code_or_message(code: Any, said: str) -> None:
    with pytest.raises(TrialFailedError, match=rf"rank 1 on \S+ \(no step reported\): (?s:.*){said}"):
        experiment.allreduce(_leave_otherwise, params={"code": code}, workers=2, quiet=True)


def _vanish() -> None:
    trial.barrier()
    if trial.rank == 1:
        os._exit(0)
    trial.barrier()


def test_a_rank_that_vanishes_is_not_tried_again() -> None:
    with pytest.raises(TrialFailedError, match=r"exited with code 0 .*os\._exit\(0\).*sys\.exit\(0\)") as caught:
        experiment.allreduce(_vanish, workers=2, quiet=True)
    assert caught.value.result is not None
    assert caught.value.result.trials[0].attempts == 1


class NoWords(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    def __reduce__(self) -> Any:
        raise RuntimeError("no pickle")


def _raise_without_words() -> None:
    first, second = NoWords(), ValueError("the other end")
    first.__context__, second.__context__ = second, first
    if trial.rank == 1:
        raise first
    trial.barrier()


def test_a_rank_that_raises_what_cannot_be_shown_or_pickled_is_not_tried_again() -> None:
    with pytest.raises(TrialFailedError, match=r"(?s)rank 1 on .* in _raise_without_words\n.*NoWords") as caught:
        experiment.allreduce(_raise_without_words, workers=2, quiet=True)
    assert caught.value.result is not None
    assert caught.value.result.trials[0].attempts == 1


def _crash() -> None:
    trial.barrier()
    if trial.rank == 1:
        ctypes.string_at(0)
    trial.barrier()


def test_a_rank_that_crashes_shows_its_stack() -> None:
    with pytest.raises(TrialFailedError, match=r"(?s)rank 1 on .*SIGSEGV.*Current thread .* in _crash") as caught:
        experiment.allreduce(_crash, workers=2, quiet=True)
    assert " in _crash" in caught.value.traceback


GROUPS = """
    import json
    import sys
    sys.path.insert(0, PROGRAMS)
    import several_groups
    import tutorial_setup
    from cargobike import experiment, torch, trial

    def program():
        several_groups.main()
        tutorial_setup.main()
        # A group of ours meets at the right place, too, although the program has named another.
        trial.report(total=float(torch.all_reduce(trial.rank, "sum")))

    def imports_torch_late():
        import importlib
        importlib.import_module("several_groups").main()
        importlib.import_module("tutorial_setup").main()

    if __name__ == "__main__":
        run = experiment.allreduce(WHICH, workers=2, stall_timeout_s=60, quiet=True)
        print(json.dumps([run.counts, run.trials[0].attempts, run.logs(0, "stderr")]))
"""


@pytest.mark.parametrize("which", ["program", "imports_torch_late"])
def test_groups_one_after_the_other_meet_and_an_address_of_the_programs_own_does_no_harm(
    tmp_path: Path, which: str
) -> None:
    script = GROUPS.replace("PROGRAMS", repr(str(PROGRAMS))).replace("WHICH", which)
    if which == "imports_torch_late":
        script = script.replace("    import several_groups\n    import tutorial_setup\n", "").replace(", torch", "")
    counts, attempts, errors = run_script(tmp_path, script)
    assert (counts, attempts) == ({"completed": 1}, 1)
    assert "not at localhost:12355 as the program says" in errors


FORKS = """
    import json
    import os
    import torch
    import torch.distributed as dist
    import torch.multiprocessing
    from cargobike import experiment

    def child(rank, port, sent):
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(port))
        dist.init_process_group("gloo", rank=rank, world_size=2)
        total = torch.ones(1)
        dist.all_reduce(total)
        sent.put(total.item())

    def train():
        import socket
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            port = probe.getsockname()[1]
        sent = torch.multiprocessing.get_context("fork").SimpleQueue()
        torch.multiprocessing.start_processes(child, (port, sent), 2, start_method="fork")
        return sent.get() + sent.get()

    if __name__ == "__main__":
        run = experiment.allreduce(train, workers=2, stall_timeout_s=60, quiet=True)
        print(json.dumps(run.values))
"""


def test_processes_that_a_rank_starts_are_a_group_of_their_own(tmp_path: Path) -> None:
    assert run_script(tmp_path, FORKS) == [4.0, 4.0]
