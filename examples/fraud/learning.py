"""From what the bank delivered to a model that is served and watched: one pipeline, first and whenever it drifts.

    cargobike pipelines run examples/fraud/learning.py:learn --set delivered=…

It is a plain function. What it calls of Cargobike is recorded, is not done twice, and leads from the deployment back to
the files. The first run is called by the story; the next one is set off by an alarm.
"""

from __future__ import annotations

import contextlib
import functools
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import baselines
import gan
import numpy as np
from scoring import Detector, average_precision, signals_of
from signals import COUNTED, PAYMENT, SIGNALS, TABLE, counted_since, make_groups, make_view

from cargobike import data, experiment, features, models, monitoring, pipelines, serving
from cargobike.engines import SparkEngine
from cargobike.errors import GateError
from cargobike.optimizers import ASHA

MODEL = DEPLOYMENT = "fraud"
GATE = "average_precision > champion_average_precision"
WATCHED = ["amount", "x", "y", "output.suspicion"]
_began = time.monotonic()


def learn(
    delivered: str,
    *,
    learn_days: int = 15,
    judge_days: int = 6,
    one_of: int = 1,
    trials: int = 20,
    epochs: int = 9,
    window: int = 1500,
    alarm: str = "4 of 5",
    engine: str = "local",
    seed: int = 7,
) -> dict[str, float]:
    """Learn from honest payments, judge by later ones with fraud among them, and serve the model if it is better.

    Args:
        delivered: The folder of the bank's files.
        learn_days: How many days are learned from; they end where judging begins.
        judge_days: By how many days is judged, the newest ones.
        one_of: Uses one in so many honest payments.
        trials: How many GANs are tried; without any, only the plain models are.
        epochs: How long a GAN is trained if it is promising.
        window: How many requests are watched as one window.
        alarm: How many unusual windows raise an alarm.
        engine: Where trials run.
        seed: Makes the search repeatable.
    """
    table = data.write(f"{delivered}/days/*.parquet", TABLE)
    say(f"{table.num_rows:,} transactions in the table {TABLE}:{table.version}")
    end, champion = pipelines.step(where_we_are)(table.version).result()
    judged_from, learned_from = end - timedelta(days=judge_days), end - timedelta(days=judge_days + learn_days)
    groups = make_groups()
    groups["accounts"].insert(f"{delivered}/customers.parquet")
    for name in COUNTED:
        groups[name].compact()  # what was counted hour by hour lies in as many files, which readers would all open
        commit = groups[name].insert(counted_since(name, learned_from.isoformat() if champion else ""))
        say(f"{name}: {commit.inserted:,} new rows, counted over 1 hour, 24 hours and 7 days")

    view = make_view()
    columns = ", ".join([*PAYMENT, "moment", "is_fraud"])
    some = f"transaction_id % {one_of} = 0"
    honest = view.create_training_dataset(
        "honest_payments",
        f"SELECT {columns} FROM {TABLE} WHERE NOT is_fraud AND {some} AND {_between(learned_from, judged_from)}",
    )
    judged = view.create_training_dataset(
        "judged_payments",
        f"SELECT {columns} FROM {TABLE} WHERE (is_fraud OR {some}) AND {_between(judged_from, end)}",
        split={"tune": 0.5, "test": 0.5},
        by="time",
    )
    usual = view.create_training_dataset(
        "usual_payments", f"SELECT {columns} FROM {TABLE} WHERE {some} AND {_between(learned_from, end)}"
    )
    say(f"{honest['train'].num_rows:,} honest payments to learn from, {_fraud_in(judged):,} thefts to be judged by")

    candidates = _search(honest, judged.id, trials=trials, epochs=epochs, engine=engine, seed=seed)
    precisions = {name: _register(name, result, honest, judged) for name, result in candidates.items()}
    _release(view, usual, window, alarm)
    return precisions


def _search(
    honest: features.TrainingDataset, judged: str, *, trials: int, epochs: int, engine: str, seed: int
) -> dict[str, Any]:
    """Search the plain models on a grid, and the GAN with ASHA, by gangs of two ranks."""
    loader = data.Loader(honest, batch_size=8192, columns={"x": list(SIGNALS)}, shuffle=True, seed=seed)
    launch = functools.partial(experiment.launch, data=loader, metric=gan.METRIC, workers=2, seed=seed, quiet=True)
    plain: dict[str, tuple[Any, Any]] = {
        "isolation forest": (baselines.train_forest, baselines.FOREST_SPACE),
        "autoencoder": (baselines.train_autoencoder, baselines.AUTOENCODER_SPACE),
    }
    results = {}
    with _place(engine) as place:
        for name, (train, space) in plain.items():
            results[name] = launch(functools.partial(train, held_out=judged), space, name=name, engine=place)
            say(f"{name}: {len(results[name].trials)} tried, best {_best(results[name]):.3f}")
        if trials:
            train_gan = functools.partial(gan.train, held_out=judged, epochs=epochs)
            asha = ASHA(reduction_factor=3, resource_min=1, resource_max=epochs)
            results["GAN"] = launch(
                train_gan, gan.SPACE, optimizer=asha, gang=2, num_trials=trials, name="one-class GAN", engine=place
            )
            say(f"GAN: {trials} tried by gangs of two ranks, best {_best(results['GAN']):.3f}")
    return results


def _place(engine: str) -> contextlib.AbstractContextManager[Any]:
    """Return where trials run; a session of Spark that is made for them serves all searches of a run."""
    if engine == "local":
        return contextlib.nullcontext(engine)
    return SparkEngine() if engine == "spark" else SparkEngine.at(engine)


def _register(name: str, result: Any, honest: features.TrainingDataset, judged: features.TrainingDataset) -> float:
    """Register the best model of a search; it becomes the champion if it finds more than the one that is.

    Searches choose by the part `tune`, so the gate decides by the part `test`, which no candidate was chosen by.
    """
    rows = signals_of(honest["train"].to_arrow().slice(0, 20_000))
    make = gan.detector if name == "GAN" else baselines.detector
    model = make(result.best.checkpoint.load(), rows)
    before = pipelines.step(champion_precision)(judged.id).result()
    precision = _precision(model, judged["test"].to_arrow())
    example = [dict(zip(SIGNALS, map(float, row), strict=True)) for row in rows[:3]]
    version = result.best.register(
        MODEL,
        model,
        example=example,
        metrics={
            "average_precision": precision,
            "champion_average_precision": before,
            "tuned_average_precision": _best(result),
        },
        description=f"Finds fraud with a one-class {name}.",
        tags=[name.replace(" ", "-").lower()],
    )
    figures = f"average precision {precision:.3f}, of the champion {before:.3f}"
    try:
        version.promote("champion", when=GATE)
        say(f"{version.reference} ({name}) passes the gate: {figures}")
    except GateError:
        say(f"{version.reference} ({name}) does not pass the gate: {figures}")
    return precision


def _release(view: features.View, usual: features.TrainingDataset, window: int, alarm: str) -> None:
    """Serve the champion, in place of what served before, and watch it: requests are compared with usual payments."""
    served, champion = pipelines.step(versions)().result()
    if not served:
        deployment = serving.deploy(DEPLOYMENT, f"{MODEL}:{champion}", view=view, log=True)
    else:
        deployment = serving.deployment(DEPLOYMENT)
        if served != champion:
            deployment.roll(f"{MODEL}:{champion}")
        monitoring.monitor(DEPLOYMENT).stop()
    monitoring.watch(
        DEPLOYMENT, usual, window=window, alarm=alarm, false_alarms=0.01, columns=WATCHED, from_beginning=False
    )
    say(f"{MODEL}:{champion} is served at {deployment.url}, and watched")


def champion_precision(judged: str) -> float:
    """Return how well the champion does on the payments that candidates are judged by; a step, since it changes."""
    if not _champion():
        return 0.0
    rows = features.training_dataset(judged)["test"].to_arrow()
    answers = models.get(f"{MODEL}@champion").predict(rows.select(list(SIGNALS)).to_pylist())
    return average_precision(rows["is_fraud"].to_numpy(), np.array([answer["suspicion"] for answer in answers]))


def where_we_are(version: int) -> tuple[datetime, int]:
    """Return where the last day ends of which the bank has delivered payments, and which version is the champion."""
    last = data.open(f"{TABLE}:{version}").read(columns=["clock"])["clock"].to_numpy().max()
    return datetime.fromtimestamp((last // 86_400 + 1) * 86_400, UTC), _champion()


def versions() -> tuple[int, int]:
    """Return which version serves, 0 if none does, and which is the champion; a step, since both change."""
    served = [one.status().version for one in serving.list_deployments() if one.name == DEPLOYMENT]
    return (served[0] if served else 0), _champion()


def _champion() -> int:
    known = [model for model in models.list() if model.name == MODEL]
    return known[0].all_aliases.get("champion", 0) if known else 0


def say(words: str) -> None:
    """Print what was done, and when."""
    print(f"  {time.monotonic() - _began:5.0f} s  {words}", flush=True)


def _precision(model: Detector, rows: Any) -> float:
    return average_precision(rows["is_fraud"].to_numpy(), model.scores(signals_of(rows)))


def _best(result: Any) -> float:
    return float(result.best.metric)


def _between(start: datetime, end: datetime) -> str:
    return f"moment >= TIMESTAMPTZ '{start.isoformat()}' AND moment < TIMESTAMPTZ '{end.isoformat()}'"


def _fraud_in(dataset: features.TrainingDataset) -> int:
    return int(sum(np.count_nonzero(part.to_arrow()["is_fraud"].to_numpy()) for part in dataset))
