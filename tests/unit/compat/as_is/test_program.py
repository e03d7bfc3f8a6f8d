"""What a program expects is read from its names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cargobike.compat.as_is.program import read_program
from cargobike.core.errors import InvalidInputError


@pytest.mark.parametrize(
    ("code", "expects"),
    [
        ("spark.range(3)", {"spark"}),
        ("def f():\n    return sc.parallelize([1])", {"sc"}),
        ("spark = make()\nspark.range(3)", set()),
        ("from somewhere import spark\nspark.range(3)", set()),
        ("import spark.sql\nspark.sql", set()),
        ("def f(sc):\n    return sc", set()),
        ("with make() as spark:\n    spark.range(3)", set()),
        ("from notebook import *\nspark.range(3)", set()),
        ("x.spark.range(3)", set()),
        ("print(sparkle)", set()),
    ],
)
def test_a_session_is_expected_where_it_is_used_and_not_made(tmp_path: Path, code: str, expects: set[str]) -> None:
    path = tmp_path / "old.py"
    path.write_text(code)
    assert read_program(str(path)).expects == expects


def test_a_notebook_is_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "old.ipynb"
    cells = [
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import hops\n", "!pip list\n", "a = 1"]},
        {"cell_type": "markdown", "source": "words"},
        {"cell_type": "code", "source": "sc.range(a)"},
    ]
    path.write_text(json.dumps({"cells": cells}))
    program = read_program(str(path))
    assert program.code.split("\n") == ["import hops", "a = 1", "", "sc.range(a)", ""]
    assert program.expects == {"sc"}


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("gone.py", None, r"gone\.py cannot be read: No such file or directory\. Give a script"),
        ("bytes.py", b"\xff\xfe", r"bytes\.py cannot be read: it is not text"),
        ("bad.py", b"def", r"bad\.py is not Python: invalid syntax"),
        ("bad.ipynb", b"[]", r"bad\.ipynb is not Python: it is not a notebook"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path: Path, name: str, content: bytes | None, complaint: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=complaint):
        read_program(str(tmp_path / name))
