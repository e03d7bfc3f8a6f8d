"""`import cargobike` is cheap, and what it offers is pinned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"

FRAMEWORKS = {"torch", "tensorflow", "jax", "pyspark", "optuna", "pandas", "numpy", "sklearn", "fastapi"}
COMFORTS = {"sqlalchemy", "plotly", "rich", "yaml", "IPython", "typer", "zmq", "cloudpickle"}
NAMES = ("IDLE", "AbstractOptimizer", "Resources", "Search", "Searchspace", "Suggestion", "Trial")
MOST_MODULES_OF_OURS = 160
"""As many as a quiet launch of a search needs before its first trial; each of them delays that trial."""
FIRST_TRIAL = """
import json, sys
from cargobike import Searchspace, experiment

class AtFirstTrial:
    modules = None

    def on_facts(self, facts):
        if self.modules is None and any(type(fact).__name__ == "AttemptStarted" for fact in facts):
            self.modules = sorted(sys.modules)

def train(x):
    return x

look = AtFirstTrial()
space = Searchspace(x=("DOUBLE", [0, 1]))
experiment.launch(train, space, num_trials=1, workers=1, quiet=True, callbacks=[look])
print(json.dumps([look.modules, "numpy" in sys.modules]))
"""
DOORS = ("experiment", "trial", "tensorboard", "devices", "project")


def loaded_by(statement: str) -> set[str]:
    """Return the top-level names in `sys.modules` after a fresh interpreter ran `statement`."""
    program = f"import sys\n{statement}\nimport json\nprint(json.dumps(sorted(sys.modules)))"
    environment = dict(os.environ, PYTHONPATH=str(SOURCE))
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_importing_the_package_loads_no_library() -> None:
    loaded = loaded_by("import cargobike")
    assert "cargobike" in loaded
    assert loaded & (FRAMEWORKS | COMFORTS) == set()


@pytest.mark.parametrize("door", DOORS)
def test_opening_a_door_loads_no_framework(door: str) -> None:
    loaded = loaded_by(f"from cargobike import {door}")
    assert loaded & FRAMEWORKS == set()


def test_what_a_train_function_imports_stays_light() -> None:
    loaded = loaded_by("from cargobike import trial, tensorboard, devices, project")
    assert loaded & (FRAMEWORKS | {"sqlalchemy", "plotly", "rich", "yaml", "IPython", "typer"}) == set()


def test_a_program_that_launches_does_not_load_what_runs_in_trials_for_its_imports() -> None:
    program = (
        "from cargobike import Searchspace, experiment, trial\nimport sys, json\nprint(json.dumps([*sys.modules]))"
    )
    environment = dict(os.environ, PYTHONPATH=str(SOURCE))
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    loaded = json.loads(done.stdout)
    assert "msgspec" in loaded
    assert "typing_extensions" not in loaded
    assert "cargobike.experiments.trial.context" not in loaded


def test_a_launch_loads_no_more_than_its_first_trial_needs(tmp_path: Path) -> None:
    script = tmp_path / "search.py"
    script.write_text(FIRST_TRIAL)
    environment = dict(os.environ, PYTHONPATH=str(SOURCE), CARGOBIKE_PROJECT=str(tmp_path / "project"))
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    loaded, has_numpy_at_the_end = json.loads(done.stdout)
    assert {name.partition(".")[0] for name in loaded} & (FRAMEWORKS | (COMFORTS - {"zmq", "cloudpickle"})) == set()
    assert {"subprocess", "html", "secrets", "csv"} & set(loaded) == set()
    assert not has_numpy_at_the_end  # a search of one trial has nothing to learn from
    ours = [name for name in loaded if name.partition(".")[0] == "cargobike"]
    assert "cargobike.experiments.driving.loop" in ours
    assert len(ours) <= MOST_MODULES_OF_OURS, ours


def test_the_public_names_are_these() -> None:
    import cargobike

    assert sorted(cargobike.__all__) == sorted([*DOORS, *NAMES, "__version__"])
    for name in cargobike.__all__:
        assert getattr(cargobike, name) is not None
    assert set(cargobike.__all__) <= set(dir(cargobike))


def test_a_wrong_name_is_an_attribute_error() -> None:
    import cargobike

    with pytest.raises(AttributeError, match="experimint"):
        getattr(cargobike, "experimint")  # noqa: B009
