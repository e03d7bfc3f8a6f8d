"""Ranks that train together: they find each other, whatever framework they use, and their values come back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cargobike import experiment, trial
from cargobike.core.errors import InvalidInputError, TrialFailedError
from cargobike.experiments.trial import context
from support.scripts import run_script

TORCHRUN_STYLE = """
    import json
    import os
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from cargobike import experiment, trial

    def train(lr):
        dist.init_process_group()
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for step in range(4):
            loss = model(torch.rand(8, 4) + dist.get_rank()).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        weights = sum(float(weight.sum()) for weight in model.parameters())
        mean_rank = trial.all_reduce(trial.rank)
        dist.destroy_process_group()
        assert int(os.environ["RANK"]) == trial.rank and int(os.environ["LOCAL_RANK"]) == trial.local_rank
        return {"weights": weights, "world_size": int(os.environ["WORLD_SIZE"]), "mean_rank": mean_rank}

    if __name__ == "__main__":
        how = {"params": {"lr": 0.1}, "metric": "weights", "quiet": True}
        runs = [experiment.allreduce(train, workers=workers, **how) for workers in (2, 1)]
        search = experiment.launch(train, {"lr": [0.1, 0.2, 0.3]}, metric="weights", gang=2, quiet=True)
        loaded = experiment.load(search.id)
        print(json.dumps([[run.value, run.values] for run in runs] + [[loaded.counts, loaded.values]]))
"""


def test_code_written_for_torchrun_runs_unchanged(tmp_path: Path) -> None:
    both, alone, search = run_script(tmp_path / "work", TORCHRUN_STYLE)
    value, (first, second) = both
    assert first == second
    assert value == first["weights"]
    assert first["world_size"] == 2
    assert first["mean_rank"] == 0.5
    assert alone[1] == [{"weights": alone[0], "world_size": 1.0, "mean_rank": 0.0}]
    assert alone[0] != value
    counts, values = search
    assert counts == {"completed": 3}
    assert len(values) == 2
    assert values[0] == values[1]


def _tell(base: float) -> dict[str, float]:
    config = json.loads(os.environ["TF_CONFIG"])
    here = context.current()
    told = here.gang.exchange("greeting", f"{trial.rank}".encode(), of="workers")
    trial.barrier()
    trial.report(base=base, step=3)
    return {
        "told": sum(int(word) for word in told),
        "workers": len(config["cluster"]["worker"]),
        "index": config["task"]["index"],
        "jax": int(os.environ["JAX_PROCESS_ID"]),
        "sum": trial.all_reduce(base + trial.rank, "sum"),
        "weighted": trial.all_reduce({"a": trial.rank}, weight=1 + trial.rank * 2)["a"],
        "secret": len(here.secret),
    }


def test_ranks_of_no_framework_find_each_other_too() -> None:
    result = experiment.allreduce(_tell, params={"base": 1.0}, workers=3, quiet=True)
    assert [value["index"] for value in result.values] == [0, 1, 2]
    for rank, value in enumerate(result.values):
        assert value == {
            "told": 3,
            "workers": 3,
            "index": rank,
            "jax": rank,
            "sum": 6.0,
            "weighted": pytest.approx((0 * 1 + 1 * 3 + 2 * 5) / 9),
            "secret": 32,
        }
    assert list(result.trials[0].curve) == [(3, 1.0)]


def _fail_on_rank_1() -> None:
    trial.report(loss=1.0, step=7)
    trial.barrier()
    if trial.rank == 1:
        raise ValueError("no good")
    trial.barrier()


def test_a_failure_names_its_rank_and_ends_the_others() -> None:
    with pytest.raises(TrialFailedError, match=r"rank 1 on \S+ \(last step 7\): (?s:.*)ValueError: no good"):
        experiment.allreduce(_fail_on_rank_1, workers=2, quiet=True)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"workers": 0}, r"workers must be a whole number of at least 1"),
        ({"workers": (3, 2)}, r"such as \(2, 8\)"),
        ({"roles": {"cheif": 1}}, r"Did you mean 'chief'"),
        ({"roles": {"chief": 1}, "workers": 2}, r"the roles say how many"),
        ({"stall_timeout_s": 0}, r"stall_timeout_s must be above 0"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        experiment.allreduce(_fail_on_rank_1, quiet=True, **given)


def test_reused_processes_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="processes of their own"):
        experiment.launch(_tell, {"base": [1.0]}, gang=2, isolation="reuse", quiet=True)
