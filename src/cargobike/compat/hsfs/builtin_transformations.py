"""The built-in transformations of Hopsworks: `label_encoder("country")`."""

from __future__ import annotations

from typing import Final

from cargobike.compat.hsfs.transformation_function import BUILTIN

label_encoder: Final = BUILTIN["label_encoder"]
one_hot_encoder: Final = BUILTIN["one_hot_encoder"]
min_max_scaler: Final = BUILTIN["min_max_scaler"]
standard_scaler: Final = BUILTIN["standard_scaler"]
robust_scaler: Final = BUILTIN["robust_scaler"]
equal_width_binner: Final = BUILTIN["equal_width_binner"]
equal_frequency_binner: Final = BUILTIN["equal_frequency_binner"]
quantile_binner: Final = BUILTIN["quantile_binner"]
quantile_transformer: Final = BUILTIN["quantile_transformer"]
rank_normalizer: Final = BUILTIN["rank_normalizer"]
winsorize: Final = BUILTIN["winsorize"]
log_transform: Final = BUILTIN["log_transform"]
impute_mean: Final = BUILTIN["impute_mean"]
impute_median: Final = BUILTIN["impute_median"]
impute_constant: Final = BUILTIN["impute_constant"]
impute_mode: Final = BUILTIN["impute_mode"]
impute_category: Final = BUILTIN["impute_category"]
