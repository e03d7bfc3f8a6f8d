"""What people read while something arrives."""

from __future__ import annotations

import io
from typing import Any

from cargobike.sharing.getting.progress import Progress, ProgressLine

FACTS: dict[str, Any] = {
    "reference": "higgs@abc:3",
    "size": 10**9,
    "size_had": 45 * 10**7,
    "size_fetched": 10**8,
    "size_found": 0,
}


def test_a_line_says_how_far_how_fast_and_from_how_many() -> None:
    progress = Progress(**FACTS, rate=55e6, members=3)
    assert progress.line == "higgs@abc:3: 45.0 % of 1,000.0 MB, 55.0 MB/s from 3 members, 10 s left"


def test_a_line_says_for_whom_it_waits() -> None:
    progress = Progress(**FACTS, rate=0.0, members=0, waiting_for=("10.0.0.5:7 gone: refused",))
    assert progress.line == "higgs@abc:3: 45.0 %, waiting: 10.0.0.5:7 gone: refused"
    stream = io.StringIO()
    line = ProgressLine(stream)
    line.show(progress)
    line.show(progress)
    line.end()
    assert stream.getvalue() == progress.line + "\n", "not a terminal: a line now and then"
