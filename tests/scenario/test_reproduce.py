"""An experiment runs again with the code, parameters and seeds that were recorded."""

from __future__ import annotations

import importlib.metadata
import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from cargobike import Searchspace, experiment, project, trial
from cargobike.cli.app import app
from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.results.reproduction import is_same
from cargobike.store.history.environment import normalized
from support.scripts import run_script

SCRIPT = """
import json
from cargobike import experiment, trial
from own_layers import size

def train(x):
    import own_lazy
    for step in range(3):
        trial.report(loss=size() * step + x, step=step)
    return {"score": x + size() + own_lazy.BONUS, "size": size()}

if __name__ == "__main__":
    result = experiment.launch(train, {"x": [1, 2, 3]}, metric="score", quiet=True)
    print(json.dumps(result.id))
"""


def write_code(folder: Path, size: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "own_layers.py").write_text(f"def size():\n    return {size}\n")
    (folder / "own_lazy.py").write_text(f"BONUS = {size * 100}\n")


def test_the_recorded_code_runs_and_not_todays(tmp_path: Path) -> None:
    code = tmp_path / "code"
    write_code(code, 10)
    original = run_script(code, SCRIPT)
    write_code(code, 77)
    (code / "script.py").write_text("raise SystemExit('today it is broken')")
    found = experiment.reproduce(original, quiet=True)
    assert found.is_same
    assert found.warnings == ()
    assert {(one.trial, one.metric, one.kind) for one in found.comparisons} == {
        (number, *metric)
        for number in range(3)
        for metric in (("score", "returned"), ("size", "returned"), ("loss", "reported"))
    }
    assert found.result.best is not None
    assert found.result.best.metrics == {"score": 3 + 10 + 1000, "size": 10}
    assert found.result.id != original

    # It works from elsewhere too, when the folder it was launched in is gone.
    shutil.rmtree(code)
    again = CliRunner().invoke(app, ["reproduce", original, "--trial", "best", "--json"])
    assert again.exit_code == 0, again.output
    told = json.loads(again.stdout)
    assert told["is_same"] is True
    assert {one["trial"] for one in told["comparisons"]} == {2}


def seeded(x: float) -> float:
    noise = random.random()
    trial.report(noise=noise, step=0)
    return x + noise


def test_seeds_are_those_of_the_trials() -> None:
    space = Searchspace(x=("DOUBLE", [0, 1]))
    result = experiment.launch(seeded, space, num_trials=4, quiet=True)
    found = experiment.reproduce(result.id, trial=2, quiet=True)
    assert found.is_same
    assert [one.trial for one in found.comparisons] == [2, 2]


def moody(x: float) -> dict[str, float]:
    return {"score": x + random.SystemRandom().random(), "steady": x}


def test_a_metric_that_comes_out_otherwise_is_named() -> None:
    result = experiment.launch(moody, {"x": [1]}, metric="score", quiet=True)
    found = experiment.reproduce(result.id, quiet=True)
    assert not found.is_same
    assert [one.metric for one in found.differences] == ["score"]
    assert "score" in str(found)
    told = CliRunner().invoke(app, ["reproduce", result.id, "--quiet"])
    assert told.exit_code == 1
    assert re.search(r"score .*differs by", told.stdout)
    assert re.search(r"steady .*same", told.stdout)
    assert experiment.reproduce(result.id, tolerance=0.9, quiet=True).is_same


def test_what_differs_around_it_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("old")
    result = experiment.launch(lambda x: x, {"x": [1]}, versioned_resources=[tmp_path / "data.txt"], quiet=True)
    folder = ExperimentFolder(result.folder)
    told: dict[str, Any] = msgspec.json.decode(folder.snapshot.read_bytes())
    told["environment"]["packages"]["numpy"] = "0.1"
    told["environment"]["python"] = "3.2.1"
    folder.snapshot.write_bytes(msgspec.json.encode(told))
    (tmp_path / "data.txt").write_text("new")
    found = experiment.reproduce(result.id, quiet=True)
    assert found.is_same
    said = "\n".join(found.warnings)
    assert "package numpy was 0.1 and is" in said
    assert "python was 3.2.1 and is" in said
    assert "data.txt has changed" in said


def sometimes(x: int) -> int:
    if x == 2:
        raise ValueError("no")
    return x


def test_what_cannot_be_repeated_is_refused() -> None:
    result = experiment.launch(sometimes, {"x": [1, 2]}, quiet=True)
    with pytest.raises(NotFoundError, match=r"Trial 1 .* is failed"):
        experiment.reproduce(result.id, trial=1, quiet=True)
    with pytest.raises(NotFoundError, match="no trial 9"):
        experiment.reproduce(result.id, trial=9, quiet=True)
    with pytest.raises(InvalidInputError, match="its number, or 'best'"):
        experiment.reproduce(result.id, trial="worst", quiet=True)
    with pytest.raises(InvalidInputError, match="tolerance"):
        experiment.reproduce(result.id, tolerance=2, quiet=True)
    (ExperimentFolder(result.folder).code / "payload.msgpack").unlink()
    with pytest.raises(StoreError, match="was not kept"):
        experiment.reproduce(result.id, quiet=True)


def test_same_means_the_same_number() -> None:
    nan, infinity = float("nan"), float("inf")
    assert is_same(nan, nan, 0)
    assert is_same(infinity, infinity, 0)
    assert not is_same(infinity, 1e308, 0.5)
    assert not is_same(1.0, 1.0 + 1e-12, 0)
    assert is_same(1.0, 1.0 + 1e-12, 1e-9)
    assert not is_same(0.0, 1e-30, 1e-9)


def needed_by(*names: str) -> dict[str, str]:
    """Return the versions of packages here, and of all that they need."""
    found: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        name = normalized(waiting.pop())
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for line in importlib.metadata.requires(name) or []:
            if ";" not in line:
                waiting.append(re.split(r"[^\w.-]", line)[0])
    return found


@pytest.mark.timeout(600)
def test_a_fresh_environment_is_made_from_the_recorded_packages(tmp_path: Path) -> None:
    original = run_script(
        tmp_path / "code",
        """
        import json, sys
        from cargobike import experiment

        def train(x):
            print(sys.prefix)
            return x

        if __name__ == "__main__":
            print(json.dumps(experiment.launch(train, {"x": [5]}, quiet=True).id))
        """,
    )
    folder = project.find_experiment(original)
    packages = needed_by("cloudpickle", "msgspec", "numpy", "pyzmq", "typer", "rich", "pyyaml", "shellingham")
    lock = "".join(f"{name}=={version}\n" for name, version in packages.items())
    (folder.code / "requirements.lock").write_text(f"# Python\n{lock}# own-thing==1 from file:///nowhere\n")
    found = experiment.reproduce(original, fresh_env=True, quiet=True)
    assert found.is_same
    prefix = found.result.logs(0).strip()
    assert prefix.startswith(str(project.current().root / "environments"))
    assert any("package" in warning for warning in found.warnings), "this one has fewer packages than the original"

    (folder.code / "requirements.lock").write_text("no-such-package-anywhere==1.0\n")
    with pytest.raises(StoreError, match=r"(?s)cannot be installed.*no-such-package-anywhere"):
        experiment.reproduce(original, fresh_env=True, quiet=True)
