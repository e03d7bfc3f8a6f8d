"""Operators: run functions, notebooks, experiments and pipelines; register, deploy and roll models."""

from __future__ import annotations

from cargobike_provider.operators.deployments import CargobikeDeployOperator, CargobikeRollOperator
from cargobike_provider.operators.experiments import CargobikeExperimentOperator
from cargobike_provider.operators.functions import CargobikeFunctionOperator, CargobikeNotebookOperator
from cargobike_provider.operators.models import CargobikeRegisterModelOperator
from cargobike_provider.operators.pipelines import CargobikePipelineOperator

__all__ = [
    "CargobikeDeployOperator",
    "CargobikeExperimentOperator",
    "CargobikeFunctionOperator",
    "CargobikeNotebookOperator",
    "CargobikePipelineOperator",
    "CargobikeRegisterModelOperator",
    "CargobikeRollOperator",
]
