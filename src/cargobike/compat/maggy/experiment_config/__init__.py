"""Maggy's configurations, by the path of 1.0."""

from __future__ import annotations

from cargobike.compat.maggy.config.ablation import AblationConfig
from cargobike.compat.maggy.config.base_config import BaseConfig
from cargobike.compat.maggy.config.hyperparameter_optimization import HyperparameterOptConfig, OptimizationConfig
from cargobike.compat.maggy.config.lagom import LagomConfig
from cargobike.compat.maggy.config.tf_distributed import TfDistributedConfig
from cargobike.compat.maggy.config.torch_distributed import TorchDistributedConfig

__all__ = [
    "AblationConfig",
    "BaseConfig",
    "HyperparameterOptConfig",
    "LagomConfig",
    "OptimizationConfig",
    "TfDistributedConfig",
    "TorchDistributedConfig",
]
