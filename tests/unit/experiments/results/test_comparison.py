"""What differs between two experiments in what was asked for."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cargobike.core.asked import Aim, Asked, Gang, Keeping, Limits, Placement, Search
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentStarted
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.records import Resources
from cargobike.experiments.results.comparison import compare
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.registry import describe_optimizer
from cargobike.search.rules.stop_rules import MedianRule, describe_stop_rule
from cargobike.store.journal.journal import JournalWriter

PLAIN = Asked(
    name="n",
    search=Search(optimizer=describe_optimizer(ASHA(reduction_factor=3)), seed=1),
    aim=Aim(direction="max"),
    placement=Placement(workers=1, engine="local"),
)
OTHER = Asked(
    name="n",
    search=Search(
        optimizer=describe_optimizer(ASHA(reduction_factor=4, resource_max=3)),
        stop_rules=(describe_stop_rule(MedianRule()),),
        start_points=({"x": 0.5},),
        warm_start=("20270101-000000-zzzz",),
        seed=1,
    ),
    aim=Aim(direction="max"),
    placement=Placement(
        workers=1, engine="local", resources=Resources(gpus=0.5), gang=Gang(servers=1, options={"staleness": 8})
    ),
    limits=Limits(timeout_s=60.0, trial_timeout_s=5.0, max_failures=2),
    keeping=Keeping(durability="power", working_directory="launch", tensorboard=True),
)


def _write(project: ProjectFolder, number: int, asked: Asked) -> ExperimentFolder:
    folder = project.experiment(f"20270101-00000{number}-aaaa")
    folder.root.mkdir(parents=True)
    with JournalWriter(folder.journal) as journal:
        journal.append([ExperimentStarted(at=1.0, id=folder.id, asked=asked)])
    return folder


def test_every_difference_in_what_was_asked_is_shown(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    comparison = compare(_write(project, 1, PLAIN), _write(project, 2, OTHER))
    median = "median(warmup_steps=1, min_trials=5, interval=1)"
    assert comparison.settings == {
        "optimizer.reduction_factor": (3, 4),
        "optimizer.resource_max": (None, 3),
        "early_stop": ([], [median]),
        "start_points": ([], [{"x": 0.5}]),
        "warm_start": ([], ["20270101-000000-zzzz"]),
        "servers": (0, 1),
        "options.staleness": (None, 8),
        "resources.gpus": (None, 0.5),
        "timeout_s": (None, 60.0),
        "trial_timeout_s": (None, 5.0),
        "max_failures": (None, 2),
        "durability": ("process", "power"),
        "working_directory": ("trial", "launch"),
        "tensorboard": (False, True),
    }


def test_a_repetition_names_its_original(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    first = _write(project, 1, PLAIN)
    second = _write(project, 2, msgspec.structs.replace(PLAIN, reproduces=first.id))
    assert compare(first, second).settings == {"reproduces": (None, first.id)}


def test_what_version_1_did_not_keep_is_not_called_a_difference(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    folder = project.experiment("20270101-000001-aaaa")
    folder.root.mkdir(parents=True)
    flat = EXPERIMENT_FACTS.decode(
        b'{"fact":"experiment-started","at":1.0,"id":"20270101-000001-aaaa","name":"n","optimizer":"asha","seed":2}'
    )
    with JournalWriter(folder.journal) as journal:
        journal.append([flat])
    comparison = compare(folder, _write(project, 2, OTHER))
    assert comparison.settings == {"seed": (2, 1), "warm_start": ([], ["20270101-000000-zzzz"])}
    assert any("before all settings were kept" in warning for warning in comparison.warnings)
