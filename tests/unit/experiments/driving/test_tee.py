"""What is printed in this process is shown and kept."""

from __future__ import annotations

import io
import sys

import pytest

from cargobike.experiments.driving.tee import Tee, copying_output


def test_what_is_written_goes_to_both() -> None:
    stream, kept = io.StringIO(), bytearray()
    tee = Tee(stream, kept.extend)

    assert tee.write("gänge\ud800") == 6
    tee.writelines(["a", "b"])

    assert stream.getvalue() == "gänge\ud800ab"
    assert kept.decode() == "gänge\\ud800ab"


def test_it_looks_like_the_stream_that_it_stands_for() -> None:
    with open("/dev/null", "w", encoding="latin-1") as stream:
        tee = Tee(stream, lambda _: None)
        assert (tee.fileno(), tee.encoding, tee.isatty()) == (stream.fileno(), "latin-1", False)


def test_streams_are_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    before, kept = (sys.stdout, sys.stderr), []
    with copying_output(lambda name, data: kept.append((name, data))):
        sys.stdout.write("out")
        sys.stderr.write("err")
        replaced = sys.stderr = io.StringIO()
    try:
        assert sys.stdout is before[0]
        assert sys.stderr is replaced, "the function's own stream stays"
    finally:
        sys.stderr = before[1]
    assert kept == [("stdout", b"out"), ("stderr", b"err")]
    assert capsys.readouterr() == ("out", "err")
