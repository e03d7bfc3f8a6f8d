"""Searches in virtual time: what an optimizer would do on a cluster that need not exist, within seconds."""

from __future__ import annotations

from cargobike.experiments.scheduling.simulation import Cluster, SimulatedRun, SimulationResult, simulate

__all__ = ["Cluster", "SimulatedRun", "SimulationResult", "simulate"]
