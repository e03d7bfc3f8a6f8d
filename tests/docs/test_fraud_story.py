"""The story of examples/fraud: its parts quickly, and all of it in its short form."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from cargobike import data
from support import snippets

FOLDER = snippets.ROOT / "examples" / "fraud"


@pytest.fixture(autouse=True)
def _modules_of_the_story(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")]))


def run_story(folder: Path, *arguments: str) -> str:
    command = ["python", str(FOLDER / "story.py"), "--project", str(folder / "story"), *arguments]
    return snippets.run(command, folder, snippets.environment(folder), timeout_s=900)


def test_a_bank_is_the_same_from_the_same_seed_and_rings_share_devices_and_merchants() -> None:
    from bank import CHANGED, Bank

    bank = Bank(4000, seed=3)
    rows = bank.days(0, 9)
    assert rows.equals(Bank(4000, seed=3).days(0, 9))
    assert not rows.equals(Bank(4000, seed=4).days(0, 9))
    frame = rows.to_pandas()
    assert frame["moment"].is_monotonic_increasing
    assert frame["transaction_id"].is_unique
    assert 0.0005 < frame["is_fraud"].mean() < 0.02
    stolen, honest = frame[frame["is_fraud"]], frame[~frame["is_fraud"]]
    victims = stolen.groupby("device_id")["account_id"].nunique()
    assert victims.max() > 3, "a ring empties many accounts with one device"
    assert stolen["merchant_id"].value_counts().head(3).sum() > len(stolen) * 0.05
    assert honest.groupby("account_id").size().mean() > 20
    changed = bank.days(10, 10, CHANGED).to_pandas()
    usual = bank.days(10, 10).to_pandas()
    assert changed["amount"].median() > 1.2 * usual["amount"].median()


def test_average_precision_is_that_of_scikit_learn() -> None:
    from scoring import average_precision
    from sklearn.metrics import average_precision_score

    random = np.random.default_rng(1)
    truth = random.random(500) < 0.1
    scores = random.normal(0, 1, 500) + truth
    assert average_precision(truth, scores) == pytest.approx(average_precision_score(truth, scores))


def test_a_served_critic_says_what_torch_says() -> None:
    import torch
    from gan import _network
    from scoring import Critic, weights_of
    from signals import SIGNALS

    network = _network(len(SIGNALS), 32, 2, 1)
    rows = torch.randn(20, len(SIGNALS))
    expected = -network(rows).detach().numpy()[:, 0]
    assert Critic(weights_of(network))(rows.double().numpy()) == pytest.approx(expected, abs=1e-5)


def test_signals_know_the_full_hours_before_a_payment_and_nothing_else() -> None:
    from bank import Bank
    from signals import COUNTED, counted_since, make_groups, make_view

    bank = Bank(2000, seed=5)
    rows = bank.days(0, 2)
    data.write(rows, "transactions")
    groups = make_groups()
    groups["accounts"].insert(bank.customers())
    for name in COUNTED:
        groups[name].insert(counted_since(name))
    later = counted_since("account_hours", "2025-09-03T00:00:00+00:00")
    assert groups["account_hours"].insert(later).inserted == 0, "counted again, it is the same"
    view = make_view()
    joined = view.training_data("SELECT * FROM transactions WHERE transaction_id % 29 = 0").to_arrow().to_pandas()
    frame = rows.to_pandas()
    assert len(joined) > 100
    compared = 0
    for row in joined.itertuples():
        hour = row.clock // 3600 * 3600
        own = frame[(frame["account_id"] == row.account_id) & (frame["clock"] < hour)]
        if own.empty:
            assert row.account_last_day == 0
            continue
        counted = own["clock"].max() // 3600 * 3600 + 3600
        day = own[own["clock"] >= counted - 86400]
        if row.clock - counted < 86400:
            assert row.account_last_day == pytest.approx(np.log1p(len(day)))
            assert row.spent_24h == pytest.approx(day["amount"].sum())
            compared += 1
        own_home = bank.homes[row.account_id]
        assert row.distance_home == pytest.approx(np.log1p(np.hypot(row.x - own_home[0], row.y - own_home[1])))
    assert compared > 50
    asked = frame.iloc[-1]
    vector = view.vector(
        **{name: asked[name].item() for name in ("account_id", "merchant_id", "device_id")},
        **{name: float(asked[name]) for name in ("amount", "x", "y", "clock")},
    )
    assert vector["amount_size"] == pytest.approx(np.log(asked["amount"]))
    view.close()


@pytest.mark.timeout(1200)
def test_the_story_is_told_from_raw_data_to_a_rollback(tmp_path: Path) -> None:
    output = run_story(tmp_path, "--quick")
    assert len(re.findall(r" 400 requests in \d+ s, 0 failed", output)) == 4
    assert re.search(r"fraud drifted: .*amount", output)
    assert "after-drift-" in output
    assert ": completed, because of alarm-1" in output
    assert re.search(r"on fraud that none has seen, the (GAN|autoencoder|isolation forest) finds most", output)
    lineage = output.partition("$ cargobike lineage fraud")[2]
    for name in (
        "view payment_signals",
        "group account_hours",
        "table transactions:",
        "file ",
        "experiment ",
        "monitor",
    ):
        assert name in lineage, lineage
    assert (tmp_path / "story-delivered" / "customers.parquet").exists()
