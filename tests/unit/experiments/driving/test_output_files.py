"""What is printed is written in order, later if not now; what is lost is named."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from cargobike.experiments.driving import output_files
from cargobike.experiments.driving.output_files import OutputFiles


class Descriptors:
    """Opens files, as long as there are descriptors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.are_used_up = False
        open_really = os.open

        def open_or_not(path: Path, flags: int, mode: int = 0o777) -> int:
            if self.are_used_up:
                raise OSError(errno.EMFILE, "Too many open files", str(path))
            return open_really(path, flags, mode)

        monkeypatch.setattr("cargobike.experiments.driving.output_files.os.open", open_or_not)


@pytest.fixture
def descriptors(monkeypatch: pytest.MonkeyPatch) -> Descriptors:
    return Descriptors(monkeypatch)


def test_folders_are_made_and_pieces_are_appended(tmp_path: Path) -> None:
    outputs, path = OutputFiles(), tmp_path / "trials" / "0000" / "stdout.log"
    outputs.append(path, b"one\n")
    outputs.append(path, b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"


def test_what_cannot_be_written_is_written_later_and_in_order(
    tmp_path: Path, descriptors: Descriptors, caplog: pytest.LogCaptureFixture
) -> None:
    outputs, path, other = OutputFiles(), tmp_path / "stdout.log", tmp_path / "stderr.log"
    outputs.append(path, b"one\n")
    descriptors.are_used_up = True
    for line in (b"two\n", b"three\n"):
        outputs.append(path, line)
    outputs.append(other, b"oops\n")
    outputs.try_again(1.0)
    descriptors.are_used_up = False
    outputs.append(path, b"four\n")
    assert path.read_bytes() == b"one\n", "no line comes before an earlier one"
    outputs.try_again(1.5)
    assert path.read_bytes() == b"one\n", "not tried again at once"
    outputs.try_again(3.0)
    assert path.read_bytes() == b"one\ntwo\nthree\nfour\n"
    assert other.read_bytes() == b"oops\n"
    assert caplog.text.count("stdout.log cannot be written") == 1, "one warning, not one for each line"
    assert caplog.text.count("nothing is lost") == 2


def test_what_is_lost_is_named(
    tmp_path: Path,
    descriptors: Descriptors,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(output_files, "MOST_HELD_BYTES", 10)
    outputs, path = OutputFiles(), tmp_path / "stdout.log"
    descriptors.are_used_up = True
    for line in (b"12345\n", b"too much\n", b"8\n"):
        outputs.append(path, line)
    descriptors.are_used_up = False
    outputs.try_again(1.0)
    lost = "cargobike: 11 bytes that were printed here are lost: Too many open files\n"
    assert path.read_text() == f"12345\n\n{lost}"
    assert "11 bytes of what was printed are lost" in caplog.text
    outputs.append(path, b"again\n")
    assert path.read_text().endswith(f"{lost}again\n")


def test_what_is_lost_at_the_end_is_named(
    tmp_path: Path, descriptors: Descriptors, caplog: pytest.LogCaptureFixture
) -> None:
    outputs = OutputFiles()
    descriptors.are_used_up = True
    outputs.append(tmp_path / "stdout.log", b"hello\n")
    with caplog.at_level(logging.WARNING):
        outputs.close()
    assert f"6 bytes that were printed are lost: {tmp_path / 'stdout.log'} could not be written" in caplog.text


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "stdout.log").symlink_to(tmp_path / "elsewhere")
    OutputFiles().append(tmp_path / "stdout.log", b"x")
    assert not (tmp_path / "elsewhere").exists()
