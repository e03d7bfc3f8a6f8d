"""Captured output: passed on as it comes, cut in the middle when it does not end, started over between assignments."""

from __future__ import annotations

from cargobike.workers.output import HEAD_BYTES, PASS_ON_EVERY_S, TAIL_BYTES, CapturedOutput, OutputStream


def test_what_is_added_is_taken_once() -> None:
    stream = OutputStream()
    stream.add(b"one\n")
    stream.add(b"two\n")
    assert stream.take() == b"one\ntwo\n"
    assert not stream.has_news
    assert stream.finish() == b""


def test_of_endless_output_the_beginning_and_the_end_are_kept() -> None:
    stream = OutputStream()
    piece = b"x" * (1 << 20)
    for _ in range(20):
        stream.add(piece)
    stream.add(b"the end")
    head = b""
    while stream.has_news:
        head += stream.take()
    rest = stream.finish()
    assert len(head) == HEAD_BYTES
    assert rest.endswith(b"the end")
    assert len(rest) <= 2 * TAIL_BYTES + 100
    left_out = 20 * len(piece) + len(b"the end") - HEAD_BYTES - len(rest.partition(b"]\n")[2])
    assert f"[… {left_out} bytes left out …]".encode() in rest


def test_the_last_lines_are_whole() -> None:
    stream = OutputStream()
    stream.add(b"".join(b"line %d\n" % number for number in range(1000)))
    stream.add(b"half")
    lines = stream.last_lines().splitlines()
    assert lines[-1] == "half"
    assert all(line.startswith("line ") for line in lines[:-1])


def test_the_stacks_of_a_crash_are_among_the_last_lines_as_a_whole() -> None:
    stream = OutputStream()
    stream.add(b"before\n" * 5000)
    dump = b"Fatal Python error: Aborted\n" + b"  File f, line 3 in g\n" * 500
    stream.add(dump)
    lines = stream.last_lines()
    assert lines.startswith("before\n")
    assert lines.endswith(dump.decode())
    assert len(lines) < len(dump) + 2001


def test_the_next_assignment_starts_over() -> None:
    stream = OutputStream()
    stream.add(b"x" * (HEAD_BYTES + 10))
    stream.finish()
    assert stream.last_lines() == ""
    stream.add(b"fresh")
    assert stream.take() == b"fresh"


def test_both_streams_are_due_a_moment_after_the_first_word() -> None:
    output = CapturedOutput()
    output.add("stderr", b"oh", 10.0)
    output.add("stdout", b"ah", 10.1)
    due = output.due
    assert output.take() == [("stdout", b"ah"), ("stderr", b"oh")]
    assert (due, output.due) == (10.0 + PASS_ON_EVERY_S, None)
    assert output.finish() == []
    assert output.last_lines() == ""
