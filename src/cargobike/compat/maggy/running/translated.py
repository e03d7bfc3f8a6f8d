"""Trials of ours as trials of Maggy's."""

from __future__ import annotations

from cargobike.compat.maggy.trial import Trial as TheirTrial
from cargobike.core.records import Trial, TrialState

_STATUS = {
    TrialState.PENDING: TheirTrial.PENDING,
    TrialState.RUNNING: TheirTrial.RUNNING,
    TrialState.PAUSED: TheirTrial.RUNNING,
    TrialState.COMPLETED: TheirTrial.FINALIZED,
    TrialState.STOPPED: TheirTrial.FINALIZED,
    TrialState.FAILED: TheirTrial.ERROR,
}


def as_theirs(trial: Trial) -> TheirTrial:
    """Return a trial as Maggy's optimizers and stop rules read it."""
    theirs = TheirTrial(dict(trial.params))
    update(theirs, trial)
    return theirs


def update(theirs: TheirTrial, trial: Trial) -> None:
    """Bring one of Maggy's trials up to date.

    As in Maggy, the last value of a stopped trial is its `final_metric`; it does not win for that.
    """
    theirs.status = _STATUS[trial.state]
    theirs.early_stop = trial.state is TrialState.STOPPED
    theirs.metric_history = list(trial.curve.values)
    theirs.step_history = list(trial.curve.steps)
    theirs.metric_dict = dict(trial.curve)
    theirs.start = trial.started_at
    theirs.duration = None if trial.duration_s is None else trial.duration_s * 1000
    last = trial.curve.values[-1] if len(trial.curve) else None
    theirs.final_metric = trial.value if trial.value is not None else last if theirs.early_stop else None
