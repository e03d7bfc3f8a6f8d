"""The figures of the notebook: what payments look like, how searches went, and what the changed world did to models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from learning import MODEL
from matplotlib.ticker import NullFormatter
from scoring import precision_recall

HONEST, STOLEN, QUIET = "#2f6f9f", "#d1495b", "#9aa5b1"
COLOURS = ("#2f6f9f", "#e08e45", "#5b8c5a", "#d1495b", "#7a5c99")
STYLE = {
    "figure.dpi": 80,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}
plt.rcParams.update(STYLE)


def payments(rows: pa.Table, homes: np.ndarray[Any, Any]) -> Any:
    """Draw when and how much is paid, and the work of one ring: where its victims live, and where it pays."""
    columns = {
        name: rows[name].to_numpy() for name in ("clock", "amount", "is_fraud", "device_id", "account_id", "x", "y")
    }
    stolen = columns["is_fraud"]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.2))
    for picked, colour, word in ((~stolen, HONEST, "honest"), (stolen, STOLEN, "stolen")):
        hours = columns["clock"][picked] % 86_400 / 3600
        left.hist(hours, bins=24, range=(0, 24), density=True, histtype="step", color=colour, label=word, linewidth=1.6)
        middle.hist(
            np.log10(columns["amount"][picked]), bins=40, density=True, histtype="step", color=colour, linewidth=1.6
        )
    left.set(title="Time of day", xlabel="hour", xticks=range(0, 25, 6), yticks=[])
    left.legend()
    middle.set(title="Amount", xlabel="amount", yticks=[], xticks=[0, 1, 2, 3], xticklabels=["1", "10", "100", "1000"])
    devices, counts = np.unique(columns["device_id"][stolen], return_counts=True)
    ring = stolen & (columns["device_id"] == devices[np.argmax(counts)])
    victims = np.unique(columns["account_id"][ring])
    right.scatter(*homes[::20].T, s=1, color=QUIET, alpha=0.5, label="homes")
    right.scatter(*homes[victims].T, s=22, color=HONEST, label="victims of one device")
    right.scatter(columns["x"][ring], columns["y"][ring], s=22, color=STOLEN, marker="x", label="where it paid")
    right.set(title="One device of a ring", xticks=[], yticks=[])
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3, handletextpad=0.1, columnspacing=0.8)
    return figure


def signals(rows: pa.Table, names: Sequence[str]) -> Any:
    """Draw how signals of honest and of stolen payments are distributed."""
    stolen = rows["is_fraud"].to_numpy()
    figure, panels = plt.subplots(2, (len(names) + 1) // 2, figsize=(11, 4))
    for panel, name in zip(panels.flat, names, strict=False):
        values = rows[name].to_numpy()
        ends = np.quantile(values, [0.001, 0.999])
        for picked, colour, word in ((~stolen, HONEST, "honest"), (stolen, STOLEN, "stolen")):
            panel.hist(values[picked], bins=40, range=ends, density=True, color=colour, alpha=0.55, label=word)
        panel.set(title=name, yticks=[])
    panels.flat[0].legend()
    return figure


def search(result: Any) -> Any:
    """Draw how the trials of a search went, and which parameters the good ones have."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.4))
    for trial in result.trials:
        steps, values = zip(*trial.curve, strict=True) if len(trial.curve) else ((), ())
        is_best = trial.number == result.best.number
        colour, width = (STOLEN, 2.2) if is_best else (HONEST if str(trial.state) == "completed" else QUIET, 1.0)
        left.plot(
            [step + 1 for step in steps], values, color=colour, linewidth=width, marker=".", zorder=3 if is_best else 2
        )
    left.set(title="Each GAN, by epoch: grey ones were stopped by ASHA", xlabel="epoch", ylabel="average precision")
    reached = np.array([max((value for _, value in trial.curve), default=0.0) for trial in result.trials])
    points = right.scatter(
        [trial.params["critic_lr"] for trial in result.trials],
        [trial.params["mixed"] for trial in result.trials],
        c=reached,
        s=30 + 25 * np.array([trial.params["layers"] for trial in result.trials]),
        cmap="viridis",
    )
    right.set(title="What they reached (larger: more layers)", xlabel="critic_lr", ylabel="mixed", xscale="log")
    right.xaxis.set_minor_formatter(NullFormatter())
    figure.colorbar(points, ax=right, label="average precision")
    return figure


def curves(is_fraud: np.ndarray[Any, Any], suspicions: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    """Draw precision over recall, a line for each model."""
    figure, panel = plt.subplots(figsize=(6, 3.6))
    for (name, suspicion), colour in zip(suspicions.items(), COLOURS, strict=False):
        precision, recall = precision_recall(is_fraud, suspicion)
        panel.plot(recall, precision, color=colour, label=name, linewidth=1.8)
    panel.set(
        title="Fraud that none has seen", xlabel="share of the fraud that is found", ylabel="precision", ylim=(0, 1.02)
    )
    panel.legend()
    return figure


def windows(record: Any) -> Any:
    """Draw how far the columns of each window have moved, and where the alarm was raised."""
    figure, panel = plt.subplots(figsize=(9, 3))
    numbers = [window.number for window in record.windows]
    for name, colour in zip(record.windows[0].psi, COLOURS, strict=False):
        panel.plot(numbers, [window.psi[name] for window in record.windows], color=colour, marker="o", label=name)
    for window in record.windows:
        if window.unusual:
            panel.axvspan(window.number - 0.4, window.number + 0.4, color=STOLEN, alpha=0.12, linewidth=0)
    for alarm in record.alarms:
        panel.annotate("alarm", (alarm.raised.window, panel.get_ylim()[1]), color=STOLEN, ha="center", va="top")
    panel.set(title="Windows of requests; shaded: unusual", xlabel="window", ylabel="population stability index")
    panel.set_xticks(numbers)
    panel.legend(loc="upper left")
    return figure


def steps(run: Any) -> Any:
    """Draw when the steps of a run began and ended."""
    done = [step for step in run.steps if step.ended_at and step.ended_at - step.started_at > 0.05]
    start = min(step.started_at for step in done)
    figure, panel = plt.subplots(figsize=(9, 0.22 * len(done) + 0.8))
    for row, step in enumerate(done):
        colour = HONEST if step.state.value == "completed" else STOLEN
        panel.barh(row, max(step.ended_at - step.started_at, 0.15), left=step.started_at - start, color=colour)
    panel.set(title=f"{run.id}, because of {run.cause.get('alarm')}", xlabel="seconds")
    panel.set_yticks(range(len(done)), [step.name for step in done])
    panel.invert_yaxis()
    return figure


def days(precisions: Mapping[int, Mapping[int, float]], changes: int, released: int) -> Any:
    """Draw how well each version finds the fraud of each day."""
    figure, panel = plt.subplots(figsize=(9, 3.2))
    numbers = sorted(precisions)
    for version, colour in zip(
        sorted({one for day in precisions.values() for one in day}), (HONEST, STOLEN), strict=False
    ):
        panel.plot(
            numbers, [precisions[day][version] for day in numbers], color=colour, marker="o", label=f"{MODEL}:{version}"
        )
    for day, words in ((changes, "habits change"), (released, "release")):
        panel.axvline(day - 0.5, color=QUIET, linestyle="--", linewidth=1)
        panel.annotate(words, (day - 0.45, 0.96), color="#5c6670", fontsize=8)
    panel.set(title="Who finds the fraud of each day", xlabel="day", ylabel="average precision", ylim=(0, 1.02))
    panel.set_xticks(numbers)
    panel.legend(loc="center left")
    return figure
