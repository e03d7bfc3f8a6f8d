"""Programs of Hydra, searched as they are: overrides, groups, run folders, files that they write."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cargobike import experiment
from cargobike.cli.app import app

PROGRAM = """
import json, logging, os
import hydra
from hydra.core.hydra_config import HydraConfig

log = logging.getLogger(__name__)


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    log.info("training in %s", os.getcwd())
    loss = abs(cfg.optimizer.lr - 0.01)
    for epoch in range(3):
        print(f"epoch {epoch} loss {loss + 1 / (epoch + 1)}")
    folder = HydraConfig.get().runtime.output_dir
    with open(os.path.join(folder, "score.json"), "w") as file:
        json.dump({"loss": loss, "name": cfg.name, "kind": cfg.optimizer.kind, "hidden": list(cfg.hidden)}, file)
    print(loss)


if __name__ == "__main__":
    main()
"""
CONFIG = """
defaults:
  - optimizer: sgd
  - _self_
name: plain
hidden: [8]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "conf/optimizer").mkdir(parents=True)
    (tmp_path / "conf/config.yaml").write_text(CONFIG)
    (tmp_path / "conf/optimizer/sgd.yaml").write_text("kind: sgd\nlr: 0.5\n")
    (tmp_path / "conf/optimizer/adam.yaml").write_text("kind: adam\nlr: 0.02\n")
    return tmp_path


def search(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["search", "--json", *arguments])


def test_a_hydra_program_is_searched_by_its_last_line(folder: Path) -> None:
    """A value in the configuration, by an override of its own; nothing is written beside the program."""
    done = search(
        *("--param", "lr=0.1,0.01", "--direction", "min", "--workers", "2"),
        *("--report", r"epoch (?P<step>\d+) loss (?P<loss>\S+)", "--pattern", r"^(\d\S+)$", "--metric", "loss"),
        *("--", sys.executable, "train.py", "optimizer.lr={lr}", "hydra.run.dir={folder}"),
    )
    assert done.exit_code == 0, done.output
    best = experiment.load(json.loads(done.stdout)["id"]).best
    assert best is not None
    assert (best.params, best.value) == ({"lr": 0.01}, 0.0)
    assert list(best.curves["loss"].values)[:3] == [1.0, 0.5, pytest.approx(1 / 3)]
    assert {path.name for path in best.artifacts} >= {"score.json", "train.log", "config.yaml", "overrides.yaml"}
    assert not (folder / "outputs").exists()


def test_groups_and_values_of_every_kind_are_overridden_at_once(folder: Path) -> None:
    """Names lead into the configuration, the score is in the run's own folder, and every value arrives as it was."""
    (folder / "space.yaml").write_text(
        "optimizer: [adam]\noptimizer.lr: [0.01]\n"
        'name: {categorical: ["a=b, (c)", "it\'s", "1"]}\nhidden: {categorical: [[16, 16]]}\n'
    )
    done = search(
        *("--space", "space.yaml", "--optimizer", "gridsearch", "--direction", "min", "--workers", "2"),
        *("--file", "{folder}/score.json", "--metric", "loss"),
        *("--", sys.executable, "train.py", "{overrides}", "hydra.run.dir={folder}", "hydra.job.chdir=true"),
    )
    assert done.exit_code == 0, done.output
    result = experiment.load(json.loads(done.stdout)["id"])
    assert result.counts == {"completed": 3}
    assert {trial.extras["name"] for trial in result.trials} == {"a=b, (c)", "it's", "1"}
    assert all(trial.extras["hidden"] == [16, 16] and trial.extras["kind"] == "adam" for trial in result.trials)
    assert "training in" in result.trials[0].logs


def test_what_hydra_refuses_is_said_with_the_command_that_was_run(folder: Path) -> None:
    done = search("--param", "learning_rate=0.1,0.2", "--workers", "1", "--", sys.executable, "train.py", "{overrides}")
    assert done.exit_code != 0
    text = done.output + str(done.exception)
    assert "Key 'learning_rate' is not in struct" in text
    assert "train.py learning_rate=0.1" in text
    assert "To debug it, call" not in text
    assert text.count("Key 'learning_rate' is not in struct") == text.count("It was run as:")
