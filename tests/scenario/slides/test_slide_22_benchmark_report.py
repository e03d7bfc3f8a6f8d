"""Slide 22: a benchmark whose report has the shape of the slide's: steps, images/sec ± jitter, total."""

from __future__ import annotations

import re

from typer.testing import CliRunner

from cargobike.cli.app import app

WORDS = ["bench", "train", "--model", "mnist", "--steps", "11", "--warmup", "1", "--batch", "16", "--way", "one"]
STEP = re.compile(r"^\d+ +images/sec: [\d.]+ \+/- [\d.]+ \(jitter = [\d.]+\)", re.MULTILINE)


def test_the_report_reads_as_on_the_slide() -> None:
    result = CliRunner().invoke(app, WORDS)
    assert result.exit_code == 0, result.output
    assert len(STEP.findall(result.output)) == 3
    assert re.search(r"total images/sec: [\d.]+", result.output)
