"""`hops.beam`: Flink clusters for Beam; each call says what stands in its place."""

from __future__ import annotations

from cargobike.compat.hops.translating.gone import no_longer

__all__ = [
    "create_runner",
    "get_portable_runner_config",
    "get_sdk_worker",
    "start",
    "start_beam_jobserver",
    "start_runner",
    "stop_runner",
]

_WHY = (
    "There is no Flink cluster here: start one yourself and give its address to Beam, or write the steps "
    "as a pipeline (cargobike.pipelines)."
)

create_runner = no_longer("hops.beam.create_runner", _WHY)
get_portable_runner_config = no_longer("hops.beam.get_portable_runner_config", _WHY)
get_sdk_worker = no_longer("hops.beam.get_sdk_worker", _WHY)
start = no_longer("hops.beam.start", _WHY)
start_beam_jobserver = no_longer("hops.beam.start_beam_jobserver", _WHY)
start_runner = no_longer("hops.beam.start_runner", _WHY)
stop_runner = no_longer("hops.beam.stop_runner", _WHY)
