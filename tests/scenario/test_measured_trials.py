"""What trials use, measured while they run: in the result, the command line and the API."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from cargobike import experiment
from cargobike.cli.app import app


def work(ranks: int) -> int:
    """Compute until so many ranks have been measured."""
    import time
    from pathlib import Path

    from cargobike.core.layout import TrialFolder
    from cargobike.experiments.usage import read_usage

    here = Path.cwd()
    usage = TrialFolder(here.parents[1] / "trials" / here.name).usage
    data = bytearray(50_000_000)
    give_up_at = time.monotonic() + 60
    while len(read_usage(usage).ranks) < ranks and time.monotonic() < give_up_at:
        data[0] = sum(range(100_000)) % 256
    return ranks


def test_a_trial_that_takes_a_while_is_measured() -> None:
    result = experiment.launch(work, [{"ranks": 1}, {"ranks": 0}], workers=1, quiet=True)
    long, short = result.trials
    assert long.usage
    assert long.usage.peak_memory_bytes is not None
    assert long.usage.peak_memory_bytes > 50_000_000
    assert long.usage.mean_cpus is not None
    assert 0 < long.usage.mean_cpus < 4
    # One that ends within a second has none; on a busy machine a short one may take longer.
    is_measured = [True, bool(short.usage)]
    frame = result.to_pandas()
    assert frame["mean_cpus"].notna().tolist() == is_measured
    assert (frame["peak_memory_bytes"] > 0).all()
    shown = json.loads(CliRunner().invoke(app, ["show", result.id, "--json"]).stdout)
    used = {trial["trial"]: trial.get("usage") for trial in shown["trial_list"]}
    assert [used[number] is not None for number in (0, 1)] == is_measured
    assert used[0]["peak_memory_bytes"] == long.usage.peak_memory_bytes
    assert "CPUs" in CliRunner().invoke(app, ["show", result.id], env={"COLUMNS": "160"}).stdout


def test_each_rank_of_a_gang_is_measured() -> None:
    result = experiment.launch(work, params={"ranks": 2}, gang=2, workers=2, quiet=True)
    assert result.trials[0].usage.ranks == [0, 1]
