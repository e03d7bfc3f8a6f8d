"""The program that does Cargobike's part of Airflow's tasks; it knows nothing of Airflow, so it is tried here, too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[3] / "providers" / "airflow" / "src" / "cargobike_provider" / "program"


def ask(folder: Path, *requests: dict[str, Any]) -> tuple[list[Any], str]:
    """Return the answers to requests, and what was printed beside them."""
    lines = "".join(json.dumps({"project": str(folder / "project"), **request}) + "\n" for request in requests)
    # The last request is answered before the pipe closes: a program whose caller is gone ends what it does.
    with (
        (folder / "printed").open("w") as printed,
        subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=printed,
            text=True,
        ) as program,
    ):
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(lines)
        program.stdin.flush()
        answers = [json.loads(program.stdout.readline()) for _ in requests]
        program.stdin.close()
        assert program.wait(60) == 0
    return answers, (folder / "printed").read_text()


def call(place: str, *args: Any) -> dict[str, Any]:
    return {"do": "function", "arguments": {"function": place, "args": args, "kwargs": {}}}


def test_functions_are_called_and_what_goes_wrong_is_told_as_data(tmp_path: Path) -> None:
    # Called as a module of ours is: the user's is meant.
    (tmp_path / "answers.py").write_text(
        "import numpy as np\n"
        "def double(x):\n    print('doubling')\n    return {'x': np.float64(2 * x), 'path': __file__}\n"
        "def fail():\n    return 1 / 0\n"
    )
    file = f"{tmp_path}/answers.py"
    create = {"create": True}
    answers, printed = ask(
        tmp_path,
        call(f"{file}:double", 21),
        {**call(f"{file}:double", 21), **create},
        call(f"{file}:fail"),
        call(f"{file}:duoble"),
        call("no.such.module:run"),
    )
    missing, good, failed, misnamed, unknown = answers
    assert "There is no project in" in missing["error"]["message"]
    assert missing["error"]["mistaken"]
    assert good == {"value": {"x": 42.0, "path": file}}
    assert failed == {"error": {"kind": "ZeroDivisionError", "message": "division by zero", "mistaken": False}}
    assert "Did you mean double?" in misnamed["error"]["message"]
    assert "has no module 'no.such.module'" in unknown["error"]["message"]
    assert "doubling" in printed
    assert "return 1 / 0" in printed
    assert "serving_requests.py" not in printed
