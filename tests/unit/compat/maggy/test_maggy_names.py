"""Every name of Maggy that scripts use is there, and says once what it is called here."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

from cargobike import Searchspace as OwnSpace
from cargobike import tensorboard as own_tensorboard
from cargobike.compat import maggy, noticing
from cargobike.compat.maggy import experiment, tensorboard
from cargobike.compat.maggy.config import TorchDistributedConfig
from cargobike.compat.maggy.names import TRANSLATIONS
from cargobike.core import settings

MODULES = (
    "ablation",
    "ablation.ablationstudy",
    "ablation.ablator",
    "ablation.ablator.abstractablator",
    "ablation.ablator.loco",
    "callbacks",
    "config",
    "config.ablation",
    "config.base_config",
    "config.hyperparameter_optimization",
    "config.lagom",
    "config.tf_distributed",
    "config.torch_distributed",
    "core",
    "core.exceptions",
    "core.patching",
    "core.patching.dataloader",
    "core.reporter",
    "earlystop",
    "earlystop.abstractearlystop",
    "earlystop.medianrule",
    "earlystop.nostop",
    "experiment",
    "experiment_config",
    "experiment_config.ablation",
    "experiment_config.lagom",
    "experiment_config.optimization",
    "experiment_config.tf_distributed",
    "experiment_config.torch_distributed",
    "optimizer",
    "optimizer.abstractoptimizer",
    "optimizer.asha",
    "optimizer.bayes",
    "optimizer.bayes.gp",
    "optimizer.bayes.tpe",
    "optimizer.gridsearch",
    "optimizer.randomsearch",
    "optimizer.singlerun",
    "optimizers",
    "pruner",
    "pruner.hyperband",
    "randomsearch",
    "searchspace",
    "tensorboard",
    "trial",
)

OF_A_STUDY = "maggy.ablation.AblationStudy"


def find(name: str) -> Any:
    """Return what an older name stands for: modules as far as there are any, then attributes."""
    parts = name.split(".")
    thing: Any = None
    for index in range(1, len(parts) + 1):
        try:
            thing = importlib.import_module("cargobike.compat." + ".".join(parts[:index]))
        except ModuleNotFoundError:
            for part in parts[index - 1 :]:
                thing = getattr(thing, part)
            break
    return thing


@pytest.mark.parametrize("module", MODULES)
def test_every_module_that_scripts_import_is_there(module: str) -> None:
    loaded = importlib.import_module(f"cargobike.compat.maggy.{module}")
    assert all(hasattr(loaded, name) for name in getattr(loaded, "__all__", ()))


@pytest.mark.parametrize("old", [one.old for one in TRANSLATIONS])
def test_every_name_is_there(old: str) -> None:
    if old.startswith(OF_A_STUDY + "."):
        thing = find(OF_A_STUDY)()
        for part in old.removeprefix(OF_A_STUDY + ".").split("."):
            thing = getattr(thing, part)
        assert callable(thing)
    else:
        assert callable(find(old))


@pytest.mark.parametrize("one", [one for one in TRANSLATIONS if one.new], ids=lambda one: one.old)
def test_every_name_of_ours_is_there(one: Any) -> None:
    room, _, rest = one.new.removeprefix("cargobike.").partition(".")
    thing: Any = importlib.import_module("cargobike")
    for part in (room, *filter(None, rest.split("."))):
        try:
            thing = importlib.import_module(f"{thing.__name__}.{part}")
        except (ModuleNotFoundError, AttributeError):
            thing = getattr(thing, part)
    assert thing is not None


def test_where_only_the_name_changes_the_result_is_the_same() -> None:
    specs: dict[str, Any] = {"x": ("DOUBLE", [1, 5]), "act": ("CATEGORICAL", ["a", "b"])}
    assert maggy.Searchspace(**specs).as_space() == OwnSpace(**specs)
    assert tensorboard.logdir() == own_tensorboard.logdir()


def test_a_call_says_once_what_it_is_called_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(settings.COMPAT_QUIET, raising=False)
    monkeypatch.setattr(noticing, "_told", set())

    def train(reporter: Any) -> int:
        reporter.broadcast(1)
        return 1

    for _ in range(2):
        experiment.lagom(train, name="x", workers=0, quiet=True)
    said = [line for line in capsys.readouterr().err.splitlines() if "is called" in line]
    assert said[0] == "cargobike: maggy.experiment.lagom is called cargobike.experiment.launch here"
    assert len(said) == len(set(said)) <= 2


def test_what_cannot_work_says_what_stands_in_its_place() -> None:
    with pytest.raises(ValueError, match=r"zero_lvl=3(?s:.*)experiment\.allreduce"):
        TorchDistributedConfig(module=print, backend="deepspeed", deepspeed_config={})
    with pytest.raises(ValueError, match="zero_lvl=4"):
        TorchDistributedConfig(module=print, zero_lvl=4)
    with pytest.raises(ValueError, match="Did you mean 'torch'"):
        TorchDistributedConfig(module=print, backend="troch")
    pruner = find("maggy.pruner.Hyperband")(1, 9, 3, 1)
    with pytest.raises(ValueError, match="gives budgets itself"):
        pruner.pruning_routine()
    with pytest.raises(ValueError, match=r"min_budget > 0(?s:.*)eta greater"):
        find("maggy.pruner.Hyperband")(0, 9, 1, 1)
    with pytest.raises(ValueError, match="TPE"):
        find("maggy.optimizer.GP")(pruner="hyperband")
    with pytest.raises(ValueError, match=r"reduction_factor=1(?s:.*)resource_max='4'"):
        find("maggy.optimizer.Asha")(1, 1, "4")


def test_importing_the_library_is_light() -> None:
    program = (
        "import sys; from cargobike.compat.maggy import experiment, Searchspace, Trial, optimizers; "
        "heavy = {'torch', 'tensorflow', 'keras', 'pyspark', 'numpy', 'pyarrow'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
