"""What a user should hear about the train function while the search goes on: each remark once."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from cargobike.core.records import Trial
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.plan import Plan

log = logging.getLogger(__name__)

_EXTRAS = "trial %s returned more than numbers: %s. That is kept as information (trial.extras), not as a metric."
_SILENT = (
    "trial %s has ended without a report of its score, so that no trial can be stopped early; call "
    "`trial.report(score=…, step=…)` in the train function, or leave early_stop out."
)


class Remarks:
    """Looks at each attempt that ends."""

    def __init__(self, plan: Plan) -> None:
        self._expects_reports = plan.every_report_is_milestone
        self._has_seen_extras = False

    def ended(self, event: ev.AttemptEnded, trials: Mapping[int, Trial]) -> None:
        """Remark on what a trial returned, and on reports that never came."""
        if event.extras and not self._has_seen_extras:
            self._has_seen_extras = True
            log.warning(_EXTRAS, event.trial, ", ".join(map(repr, event.extras)))
        trial = trials.get(event.trial)
        if self._expects_reports and event.outcome == "completed" and trial is not None:
            self._expects_reports = False
            if not len(trial.curve):
                log.warning(_SILENT, event.trial)
