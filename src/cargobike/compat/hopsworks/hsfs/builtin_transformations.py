"""The built-in transformations by their newer path."""

from __future__ import annotations

from cargobike.compat.hsfs.builtin_transformations import (
    equal_frequency_binner,
    equal_width_binner,
    impute_category,
    impute_constant,
    impute_mean,
    impute_median,
    impute_mode,
    label_encoder,
    log_transform,
    min_max_scaler,
    one_hot_encoder,
    quantile_binner,
    quantile_transformer,
    rank_normalizer,
    robust_scaler,
    standard_scaler,
    winsorize,
)

__all__ = [
    "equal_frequency_binner",
    "equal_width_binner",
    "impute_category",
    "impute_constant",
    "impute_mean",
    "impute_median",
    "impute_mode",
    "label_encoder",
    "log_transform",
    "min_max_scaler",
    "one_hot_encoder",
    "quantile_binner",
    "quantile_transformer",
    "rank_normalizer",
    "robust_scaler",
    "standard_scaler",
    "winsorize",
]
