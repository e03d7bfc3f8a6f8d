"""What ranks save together is a checkpoint when all of it is there, and other numbers of ranks go on from it."""

from __future__ import annotations

from pathlib import Path

from support.scripts import run_script

SHARDED = """
    import json
    from pathlib import Path
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    from cargobike import experiment, trial
    from cargobike.experiments.trial import context

    def train(upto, asynchronous):
        dist.init_process_group("gloo")
        mesh = init_device_mesh("cpu", (trial.world_size,))
        weights = distribute_tensor(torch.zeros(8), mesh, [Shard(0)])
        state = {"weights": weights, "step": 0}
        begun = trial.checkpoint.load_sharded(state)
        for step in range(0 if begun is None else begun + 1, upto):
            weights.add_(1)
            trial.report(total=float(weights.full_tensor().sum()), step=step)
            trial.checkpoint.save_sharded({"weights": weights, "step": step}, asynchronous=asynchronous)
            if asynchronous:
                weights.mul_(1)
        trial.checkpoint.wait()
        assert trial.checkpoint.load().name == "shards"
        return {"begun": -1 if begun is None else begun, "total": float(weights.full_tensor().sum())}

    if __name__ == "__main__":
        grid = {"upto": [3], "asynchronous": [False, True]}
        first = experiment.launch(train, grid, gang=2, workers=2, metric="total", quiet=True)
        found = []
        for each in first.trials:
            folder = sorted((first.folder / "trials" / each.id / "checkpoints").iterdir())[-1]
            meta = json.loads((folder / "meta.json").read_text())
            found.append([each.values[1], meta["kind"], meta["step"], sorted(meta["sizes"])])
        # What two ranks have saved, three go on from: as an elastic gang does when a worker joins.
        source = str(folder.parent)

        def go_on(upto):
            context.current()._start_from = source
            trained = train(upto, False)
            trial.checkpoint.clear()
            trial.barrier()
            saved = trial.checkpoint.save({"rank": trial.rank}, step=4)
            trial.barrier()
            assert trial.checkpoint.load() == {"rank": 0}
            return {**trained, "saved": float(saved.size_bytes > 0)}

        found.append(experiment.allreduce(go_on, params={"upto": 5}, workers=3, metric="total", quiet=True).values)
        print(json.dumps(found))
"""


def test_sharded_checkpoints_are_complete_and_open_to_other_numbers_of_ranks(tmp_path: Path) -> None:
    at_once, beside, enlarged = run_script(tmp_path / "work", SHARDED)
    for values, kind, step, files in (at_once, beside):
        assert values == {"begun": -1, "total": 24.0}
        assert (kind, step) == ("sharded", 2)
        assert files == ["shards/.metadata", "shards/__0_0.distcp", "shards/__1_0.distcp"]
    assert enlarged == [{"begun": 2, "total": 40.0, "saved": float(rank == 0)} for rank in range(3)]
