"""A pipeline in a project on shared storage: run, resumed elsewhere, listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cargobike import pipelines, project
from cargobike.errors import InvalidInputError, StepFailedError
from cargobike.pipelines import RunState, StepState
from support import pipeline_steps as steps


def test_a_run_is_resumed_on_another_host_and_uses_the_cache(
    project_there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    def pipeline() -> Any:
        large = steps.counted(str(marks), np.arange(300_000))
        return steps.until_allowed(str(marks), steps.add(large, 1))

    with pytest.raises(StepFailedError, match="not allowed yet"):
        pipelines.run(pipeline, run_id="shared-1")

    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "another host"))
    project.use(project_there)
    (marks / "allowed").touch()
    assert [(run.id, run.state) for run in pipelines.list()] == [("shared-1", RunState.FAILED)]
    with pytest.raises(InvalidInputError, match="There is a run shared-1 already"):
        pipelines.run(pipeline, run_id="shared-1")
    resumed = pipelines.resume("shared-1", pipeline)
    assert int(resumed.result[-1]) == 300_000
    assert steps.count(marks, "counted") == 1

    again = pipelines.run(pipeline)
    assert again.steps[0].state is StepState.CACHED
    assert steps.count(marks, "counted") == 1
