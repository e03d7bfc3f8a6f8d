"""One file for each question; `ALL` is their order in the report."""

from __future__ import annotations

from measurements import crowd, first_trial, gang, lost_worker, memory, reading, report, simulation, stop, throughput

ALL = [
    throughput.MEASUREMENT,
    first_trial.MEASUREMENT,
    report.MEASUREMENT,
    stop.MEASUREMENT,
    lost_worker.MEASUREMENT,
    memory.MEASUREMENT,
    crowd.MEASUREMENT,
    simulation.MEASUREMENT,
    reading.MEASUREMENT,
    gang.MEASUREMENT,
]
