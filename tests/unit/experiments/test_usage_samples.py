"""The samples of a trial, read from its file and added up."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.analysis.figures.usage import Panel, draw_usage
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.driving.output_files import OutputFiles
from cargobike.experiments.driving.usage_files import UsageFiles
from cargobike.experiments.usage import MOST_SAMPLES, DataPace, Sample, Usage, in_words, read_usage
from cargobike.workers.wire.messages import Used


def test_means_are_weighed_by_time_and_summed_over_ranks() -> None:
    usage = Usage(
        [
            Sample(1.0, 1.0, 100),
            Sample(4.0, 2.0, 300),
            Sample(2.0, 0.5, 900, rank=1),
            Sample(2.0, 4.0, 200, attempt=2),
            Sample(3.0, None, 50, attempt=2),
        ]
    )
    assert usage.of_rank(0).mean_cpus == pytest.approx((1 * 1 + 3 * 2 + 2 * 4) / 6)
    assert usage.mean_cpus == pytest.approx(15 / 6 + 0.5)
    assert usage.peak_memory_bytes == 900
    assert (usage.ranks, usage.mean_gpu, usage.peak_gpu_memory_bytes) == ([0, 1], None, None)


def test_what_was_used_is_said_in_words() -> None:
    usage = Usage([Sample(1.0, 0.98, 312_000_000, 0.5, 4_000_000_000)])
    assert in_words(usage) == "0.98 CPUs, 312 MB, GPU 50%, 4 GB on GPUs"
    assert repr(usage) == "Usage(0.98 CPUs, 312 MB, GPU 50%, 4 GB on GPUs, 1 samples)"
    assert (in_words(Usage([])), repr(Usage([])), bool(Usage([]))) == ("", "Usage(no samples)", False)


def test_samples_are_kept_and_read_and_damaged_lines_left_out(tmp_path: Path) -> None:
    folder = ExperimentFolder(tmp_path)
    files = UsageFiles(folder, OutputFiles())
    files.keep(Used(3, 1, 1.234567, 0.98765, 1000), 0)
    files.keep(Used(3, 2, 2.0, None, -5, 0.5, 70), 1)
    files.keep(Used(3, 2, float("nan"), float("inf"), 1), 1)
    with folder.trial(3).usage.open("ab") as file:
        file.write(b'{"after_s": 1}\n\xff\n{"after_s"')
    usage = read_usage(folder.trial(3).usage)
    assert usage.samples == [Sample(1.23, 0.988, 1000), Sample(2.0, None, 0, 0.5, 70, attempt=2, rank=1)]
    assert not read_usage(folder.trial(4).usage)


def test_a_worker_cannot_fill_the_disk_with_samples(tmp_path: Path) -> None:
    folder = ExperimentFolder(tmp_path)
    files = UsageFiles(folder, OutputFiles())
    files._counts[0] = MOST_SAMPLES - 1
    for _ in range(5):
        files.keep(Used(0, 1, 1.0, 1.0, 1), 0)
    assert len(folder.trial(0).usage.read_bytes().splitlines()) == 1


def test_a_figure_has_a_panel_for_each_thing_that_was_measured() -> None:
    panels = [
        Panel("busy processors", [("rank 0", [1.0, 3.0], [0.5, 1.0])]),
        Panel("busiest GPU", [("rank 0", [], [])]),
    ]
    drawn = draw_usage(3, panels)
    assert [trace["y"] for trace in drawn["data"]] == [[0.5, 1.0]]
    assert "yaxis2" not in drawn["layout"]
    assert draw_usage(3, [])["data"] == []


def test_the_pace_of_data_is_summed_over_ranks_and_said_in_words() -> None:
    usage = Usage(
        [
            Sample(1.0, 1.0, 100, rows_per_s=1000.0, waited=0.5),
            Sample(2.0, 1.0, 100, rows_per_s=3000.0, waited=0.0),
            Sample(2.0, 1.0, 100, rank=1, rows_per_s=1234.0, waited=0.75),
        ]
    )
    assert usage.data_pace == DataPace(3234.0, 0.5)
    assert in_words(usage) == "2 CPUs, 0.0001 MB, 3,230 rows/s, 50% of the time waiting"
    assert Usage([Sample(1.0, 1.0, 100)]).data_pace is None
    assert str(DataPace(12.34, 0.004)) == "12.3 rows/s, 0% of the time waiting"
