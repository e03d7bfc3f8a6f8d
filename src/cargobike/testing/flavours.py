"""A contract suite for flavours of models.

Write your own `Flavour`, then:

```python
class TestMyFlavour(FlavourContract):
    def case(self) -> FlavourCase:
        model = my_library.fit(…)
        return FlavourCase(model, rows=[[0.1, 0.2], …], answers=model(…).tolist(), flavour="mine")
```
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cargobike.core.errors import CargobikeError, PredictionError, StoreError, UntrustedError
from cargobike.models.flavours.flavour import Saved
from cargobike.models.flavours.registry import load, save

__all__ = ["FlavourCase", "FlavourContract"]

_ELSEWHERE = """
import importlib, json, os, sys, warnings
from pathlib import Path
import msgspec
from cargobike.models.flavours.flavour import Saved
from cargobike.models.flavours.registry import load

saved = msgspec.json.decode(Path("saved.json").read_bytes(), type=Saved)
rows = json.loads(Path("rows.json").read_text())
for library in saved.libraries:
    importlib.import_module(library)
warnings.simplefilter("ignore")  # JAX warns of every fork
child = os.fork()
if not child:
    try:
        predictor = load(saved, Path("model"))
        batches = [[answer for first in range(0, len(rows), size) for answer in predictor(rows[first : first + size])]
                   for size in (1, 3, len(rows))]
        Path("answers.json").write_text(json.dumps([*batches, list(predictor(rows[::-1]))[::-1]]))
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@dataclass(frozen=True)
class FlavourCase:
    """A model to try a flavour with.

    Attributes:
        model: The model, as a user gives it.
        rows: Some five rows.
        answers: What it answers to each.
        factory: What makes it, if its flavour asks for that.
        flavour: The flavour that is to be taken; the one that is recognised, if empty.
        expected: The flavour by which it is to be saved.
        runs_code: Whether loading it may run code.
    """

    model: Any
    rows: list[Any]
    answers: list[Any]
    factory: Any = None
    flavour: str | None = None
    expected: str = ""
    runs_code: bool = False


class FlavourContract(ABC):
    """What every flavour guarantees; see `Flavour`."""

    tolerance = 1e-5
    timeout_s = 180.0

    @abstractmethod
    def case(self) -> FlavourCase:
        """Return a model with rows and answers."""

    @pytest.fixture
    def saved(self, tmp_path: Path) -> tuple[FlavourCase, Saved, Path]:
        """Save the case, and move what was saved, as a registry does."""
        case = self.case()
        there = tmp_path / "there"
        saved = save(case.model, there, factory=case.factory, example=case.rows, flavour=case.flavour)
        folder = tmp_path / "here" / "model"
        shutil.copytree(there, folder)
        shutil.rmtree(there)
        return case, saved, folder

    def test_what_is_saved_describes_itself_in_plain_data(self, saved: tuple[FlavourCase, Saved, Path]) -> None:
        """Goes into a manifest and comes back."""
        case, description, _ = saved
        assert msgspec.json.decode(msgspec.json.encode(description), type=Saved) == description
        assert description.runs_code == case.runs_code
        assert not case.expected or description.flavour == case.expected

    def test_a_forked_process_elsewhere_gives_equal_answers_for_batches_of_any_size(
        self, saved: tuple[FlavourCase, Saved, Path]
    ) -> None:
        """Nothing but the folder is needed, and a process that has only imported libraries can be forked."""
        case, description, folder = saved
        here = folder.parent
        (here / "saved.json").write_bytes(msgspec.json.encode(description))
        (here / "rows.json").write_text(json.dumps(case.rows))
        source = str(Path(__file__).resolve().parents[2])
        done = subprocess.run(
            [sys.executable, "-c", _ELSEWHERE],
            cwd=here,
            env={**os.environ, "PYTHONPATH": source},
            capture_output=True,
            text=True,
            timeout=self.timeout_s,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        batches = json.loads((here / "answers.json").read_text())
        assert len(batches) == 4
        for answers in batches:
            self.compare(answers, case.answers)

    def test_missing_and_damaged_files_are_named(self, saved: tuple[FlavourCase, Saved, Path]) -> None:
        """A file that is cut, overwritten or missing raises `StoreError` with its name."""
        _, description, folder = saved
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert files
        for path in files:
            content = path.read_bytes()
            for damage in (content[: len(content) // 2], b"\x93 this is no model \x00", b""):
                path.write_bytes(damage)
                with pytest.raises(StoreError, match=path.name):
                    load(description, folder)
            path.unlink()
            with pytest.raises(StoreError, match=f"lacks its file {path.name}"):
                load(description, folder)
            path.write_bytes(content)
        load(description, folder)

    def test_no_code_runs_that_was_not_announced(self, saved: tuple[FlavourCase, Saved, Path], tmp_path: Path) -> None:
        """Pickles in the place of any file, and beside them, are not run; a description that lies is refused."""
        case, description, folder = saved
        witness = tmp_path / "witness"
        hostile = pickle.dumps(_Hostile(str(witness)))
        silent = msgspec.structs.replace(description, runs_code=False)
        files = [path for path in folder.rglob("*") if path.is_file()]
        for name in ("model.pkl", "factory.pkl", "module.pkl", "classes.pkl"):
            if not (folder / name).exists():
                (folder / name).write_bytes(hostile)
        if case.runs_code:
            with pytest.raises(UntrustedError, match="runs none"):
                load(silent, folder)
        else:
            self.compare(list(load(silent, folder)(case.rows)), case.answers)
        for path in files:
            content = path.read_bytes()
            path.write_bytes(hostile)
            with pytest.raises(CargobikeError):
                load(silent, folder)
            path.write_bytes(content)
        for twisted in _twisted(silent.details):
            try:
                load(msgspec.structs.replace(silent, details=twisted), folder)
            except (CargobikeError, TypeError, AttributeError):
                pass
        assert not witness.exists()
        pickle.loads(hostile)
        assert witness.exists(), "the pickle would not have run"

    def test_rows_that_cannot_be_stacked_are_named(self, saved: tuple[FlavourCase, Saved, Path]) -> None:
        """The message says which row it is; functions of the user get what is sent."""
        case, description, folder = saved
        if description.flavour == "python" or not isinstance(case.rows[0], list):
            return
        predictor = load(description, folder)
        with pytest.raises(PredictionError, match="row 2 has the shape"):
            predictor([*case.rows[:2], case.rows[2][:-1]])
        with pytest.raises(PredictionError, match="row 1 holds what is no number or text"):
            predictor([case.rows[0], [object()] * len(case.rows[0])])

    def compare(self, answers: list[Any], wanted: list[Any]) -> None:
        """Compare answers, numbers nearly."""
        assert _nearly(answers, wanted, self.tolerance), f"{answers} is not {wanted}"


class _Hostile:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def _twisted(details: dict[str, Any]) -> list[dict[str, Any]]:
    """Return descriptions with each text in turn replaced by what could lead a loader astray."""
    words = ("pickle", "module", "weights", "os:mkdir", "../../x", "__class__", "", "skops")
    return [{**details, key: word} for key in details for word in words]


def _nearly(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_nearly(one[key], other[key], tolerance) for key in one)
    if isinstance(one, list) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_nearly(left, right, tolerance) for left, right in pairs)
    if type(one) is float or type(other) is float:
        return bool(abs(one - other) <= tolerance * max(1.0, abs(other)))
    return bool(one == other and type(one) is type(other))
