"""Where a process stood when compiled code crashed becomes part of the error."""

from __future__ import annotations

from cargobike.experiments.driving.crashes import with_crash

DUMP = """Fatal Python error: Segmentation fault

Thread 0x02 (most recent call first):
  File "/home/u/loader.py", line 3 in wait

Current thread 0x01 (most recent call first):
  File "/home/u/train.py", line 9 in inner
  File "/home/u/train.py", line 20 in train
  File "/x/cargobike/experiments/trial/program.py", line 135 in _call_function
  File "/x/cargobike/workers/runner.py", line 60 in main
  File "<string>", line 1 in <module>

Extension modules: a.b, c.d (total: 2)
"""


def test_the_thread_that_crashed_comes_first_and_our_frames_are_left_out() -> None:
    error, rest = with_crash("the process died", f"step 1\n{DUMP}")
    assert rest == "step 1\n"
    assert (error or "").splitlines() == [
        "the process died",
        "Fatal Python error: Segmentation fault",
        "Current thread 0x01 (most recent call first):",
        '  File "/home/u/train.py", line 9 in inner',
        '  File "/home/u/train.py", line 20 in train',
        "Thread 0x02 (most recent call first):",
        '  File "/home/u/loader.py", line 3 in wait',
    ]


def test_a_dump_that_was_cut_short_and_one_of_many_threads_stay_bounded() -> None:
    assert with_crash("it died", "Fatal Python error: Abo") == ("it died\nFatal Python error: Abo", "")
    many = DUMP + "".join(f"\n\nThread {n:#x} (most recent call first):\n" + "  File f\n" * 99 for n in range(99))
    error, _ = with_crash("it died", many)
    assert error is not None
    assert len(error) < 5000
    assert "Current thread 0x01" in error


def test_without_a_crash_or_an_error_nothing_changes() -> None:
    assert with_crash("it died", "step 3\n") == ("it died", "step 3\n")
    assert with_crash(None, DUMP) == (None, DUMP)
