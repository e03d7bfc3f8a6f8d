"""Searches in virtual time: what an optimizer would do with a cluster that is not there, in seconds."""

from __future__ import annotations

from cargobike.experiments.scheduling.simulation import Cluster, SimulatedRun, SimulationResult, simulate

__all__ = ["Cluster", "SimulatedRun", "SimulationResult", "simulate"]
