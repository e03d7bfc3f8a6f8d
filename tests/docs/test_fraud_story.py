"""The story of examples/fraud: its parts quickly, and all of it in its short form."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from cargobike import data
from support import left_running, snippets

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


def test_a_folder_that_no_story_has_made_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "story").mkdir()
    (tmp_path / "story" / "mine.txt").write_text("keep me")
    done = subprocess.run(
        [sys.executable, str(FOLDER / "story.py"), "--project", str(tmp_path / "story"), "--quick"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "not from an earlier story: choose another folder with --project" in done.stderr
    assert (tmp_path / "story" / "mine.txt").read_text() == "keep me"


def told_until(line: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Return a story that has printed a line and goes on."""
    command = [sys.executable, str(FOLDER / "story.py"), "--project", str(folder / "story"), *arguments]
    story = subprocess.Popen(
        command, cwd=folder, env=snippets.environment(folder), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert story.stdout is not None
    printed = []
    for each in story.stdout:
        printed.append(each)
        if line in each:
            return story
    raise AssertionError("".join(printed))


@pytest.mark.timeout(1200)
def test_the_story_is_told_from_raw_data_to_a_rollback_also_after_one_that_was_killed(tmp_path: Path) -> None:
    before = left_running.children()
    killed = told_until("requests in", tmp_path, "--quick")
    killed.kill()
    killed.communicate(timeout=60)
    output = run_story(tmp_path, "--quick")  # waits until what the other one had started has ended
    assert "is from an earlier story: it is removed" in output
    assert len(re.findall(r" 300 requests in \d+ s, 0 failed", output)) == 7
    assert len(re.findall(r"\d\d+ requests meanwhile, 0 failed", output)) == 2
    assert re.search(r"fraud drifted: .*output.suspicion", output)
    assert re.search(r"run after-drift-\S+: \d+ steps, completed, because of alarm-1", output)
    assert re.search(r"on fraud that none has seen, the (GAN|autoencoder|isolation forest) finds most", output)
    serves = re.search(r"fraud:(\d+) serves in place of fraud:(\d+)", output)
    assert serves, output
    new, old = serves.groups()
    precision = dict(re.findall(r"fraud:(\d+) finds the fraud of that day with average precision ([\d.]+)", output))
    assert float(precision[new]) > float(precision[old]), output
    assert re.search(rf"fraud:{old} serves again", output)
    lineage = snippets.run(
        ["cargobike", "--project", str(tmp_path / "story"), "lineage", "fraud", "--kind", "deployment"],
        tmp_path,
        snippets.environment(tmp_path),
    )
    for name in (
        f"model fraud:{new}",
        "view payment_signals",
        "group account_hours",
        "table transactions:",
        "file ",
        "experiment ",
        "monitor",
    ):
        assert name in lineage, lineage
    assert not left_running.wait_for_end(before, tmp_path / "story")


@pytest.mark.timeout(600)
def test_an_interrupted_story_leaves_nothing_running(tmp_path: Path) -> None:
    before = left_running.children()
    story = told_until("is served at", tmp_path, "--quick")
    story.send_signal(signal.SIGINT)
    story.communicate(timeout=120)
    assert story.returncode == 130
    assert not left_running.wait_for_end(before, tmp_path / "story")


@pytest.mark.timeout(1200)
def test_the_story_runs_on_spark_with_its_project_on_s3(
    tmp_path: Path, storage_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "here"))
    address = storage_url("moto")
    before = left_running.children()
    command = ["python", str(FOLDER / "story.py"), "--quick", "--days", "1", "--engine", "spark", "--project", address]
    output = snippets.run(command, tmp_path, snippets.environment(tmp_path), timeout_s=900)
    assert re.search(r"run after-drift-\S+: \d+ steps, completed, because of alarm-1", output), output
    assert len(re.findall(r"\d\d+ requests meanwhile, 0 failed", output)) == 2, output
    assert re.search(r"fraud:\d+ serves again", output), output
    assert "experiment" in output.partition("Where does a prediction come from?")[2]
    assert f"--project {address} ui --port 8520\nand open http://127.0.0.1:8520/" in output
    assert not left_running.wait_for_end(before, address), "neither Java nor workers, deployments or watchers"


@pytest.mark.timeout(1200)
def test_the_notebook_tells_the_story_with_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORY", "quick")
    monkeypatch.delenv("CARGOBIKE_PROJECT", raising=False)
    shutil.copytree(FOLDER, tmp_path / "fraud")
    monkeypatch.delenv("PYTHONPATH")
    notebook = nbformat.read(tmp_path / "fraud" / "story.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    kept = [_pictures(cell) for cell in notebook.cells]
    assert sum(kept) >= 7, "the notebook is kept with its figures"
    client = NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path / "fraud")}})
    client.execute()
    assert [_pictures(cell) for cell in notebook.cells] == kept


def _pictures(cell: Any) -> int:
    return sum("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
