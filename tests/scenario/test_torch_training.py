"""A real training loop: a forked process must be able to compute, load data in parallel and keep its state."""

from __future__ import annotations

from pathlib import Path

from support.scripts import run_script

TRAINING = """
    import json
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from cargobike import experiment, trial

    torch.manual_seed(0)
    xs = torch.rand(64, 4)
    data = TensorDataset(xs, xs.sum(dim=1, keepdim=True))

    def train(lr, loaders):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        saved = trial.checkpoint.load()
        if saved is not None:
            model.load_state_dict(saved["model"])
        for epoch in range(0 if saved is None else saved["epoch"] + 1, 3):
            for x, y in DataLoader(data, batch_size=16, num_workers=loaders, persistent_workers=loaders > 0):
                loss = torch.nn.functional.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            trial.report(loss=loss, step=epoch)
            trial.checkpoint.save({"model": model.state_dict(), "epoch": epoch})
        return loss.detach()

    runs = []
    for isolation in ("fresh", "reuse"):
        result = experiment.launch(
            train, {"lr": [0.1, 0.01], "loaders": [0, 2]}, direction="min", isolation=isolation, seed=3, quiet=True
        )
        assert result.counts == {"completed": 4}, [t.error for t in result.trials]
        assert [len(t.curve) for t in result.trials] == [3] * 4
        runs.append([t.value for t in result.trials])
    print(json.dumps(runs))
"""


def test_models_are_trained_alike_in_fresh_and_reused_processes(tmp_path: Path) -> None:
    fresh, reused = run_script(tmp_path / "work", TRAINING)
    assert fresh == reused
    assert all(0 < loss < 100 for loss in fresh)
