"""What trials used over time: numbers and a figure."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter

from cargobike.analysis.figures.usage import Panel, draw_usage
from cargobike.experiments.pages.answers import Figure, UsageAnswer, UsageSample
from cargobike.experiments.pages.api.inputs import ExperimentId, TrialNumber
from cargobike.experiments.pages.finding import trial_in
from cargobike.experiments.pages.state import State
from cargobike.experiments.usage import Sample, Usage, in_words, read_usage
from cargobike.ui.web.answering import REFUSALS, sends

routes = APIRouter(prefix="/experiments/{experiment_id}/trials/{number}", tags=["trials"], responses=REFUSALS)
_PANELS: tuple[tuple[str, Callable[[Sample], float | None]], ...] = (
    ("busy processors", lambda sample: sample.cpus),
    ("memory (MB)", lambda sample: sample.memory_bytes / 1e6),
    ("busiest GPU", lambda sample: sample.gpu),
    ("rows per second", lambda sample: sample.rows_per_s),
    ("share of waiting for data", lambda sample: sample.waited),
    ("memory on GPUs (MB)", lambda sample: None if sample.gpu_memory_bytes is None else sample.gpu_memory_bytes / 1e6),
)


@routes.get("/usage")
@sends
def usage(state: State, experiment_id: ExperimentId, number: TrialNumber) -> UsageAnswer:
    """Return what the processes of a trial used: processors, memory, GPUs and rows of data, over time."""
    found = _usage(state, experiment_id, number)
    pace = found.data_pace
    return UsageAnswer(
        trial=number,
        summary=in_words(found),
        mean_cpus=found.mean_cpus,
        peak_memory_bytes=found.peak_memory_bytes,
        mean_gpu=found.mean_gpu,
        peak_gpu_memory_bytes=found.peak_gpu_memory_bytes,
        rows_per_s=None if pace is None else pace.rows_per_s,
        waited=None if pace is None else pace.waited,
        samples=[
            UsageSample(
                after_s=one.after_s,
                cpus=one.cpus,
                memory_bytes=one.memory_bytes,
                gpu=one.gpu,
                gpu_memory_bytes=one.gpu_memory_bytes,
                attempt=one.attempt,
                rank=one.rank,
                rows_per_s=one.rows_per_s,
                waited=one.waited,
            )
            for one in found.samples
        ],
    )


@routes.get("/figures/usage")
@sends
def usage_figure(state: State, experiment_id: ExperimentId, number: TrialNumber) -> Figure:
    """Return the same as a figure, of the newest attempt, one line for each rank."""
    found = _usage(state, experiment_id, number)
    last = max((sample.attempt for sample in found.samples), default=1)
    panels = [Panel(title, [_line(found, last, rank, read) for rank in found.ranks]) for title, read in _PANELS]
    return Figure(**draw_usage(number, panels))


def _usage(state: State, experiment_id: ExperimentId, number: TrialNumber) -> Usage:
    live = state.live.with_files(experiment_id)
    with live.reading() as record:
        trial_in(record, number)
    return read_usage(live.folder.trial(number).usage)


def _line(
    found: Usage, attempt: int, rank: int, read: Callable[[Sample], float | None]
) -> tuple[str, list[float], list[float]]:
    samples = [one for one in found.samples if one.attempt == attempt and one.rank == rank]
    points = [(one.after_s, value) for one in samples if (value := read(one)) is not None]
    return f"rank {rank}", [at for at, _ in points], [value for _, value in points]
