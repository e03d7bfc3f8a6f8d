"""Amazon SageMaker's tuning job configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cargobike.search.spaces.file import Reader, SpaceFile

_RANGES = {
    "ContinuousParameterRanges": "DOUBLE",
    "IntegerParameterRanges": "INTEGER",
    "CategoricalParameterRanges": "CATEGORICAL",
}
_SCALES = {"Auto": "linear", "Linear": "linear", "Logarithmic": "log", "ReverseLogarithmic": "reverse-log"}


def is_sagemaker(document: Mapping[str, Any]) -> bool:
    """Tell whether a document is one of these."""
    return any(key in document for key in ("HyperParameterTuningJobConfig", "ParameterRanges", *_RANGES))


def read_sagemaker(document: Mapping[str, Any], source: str) -> SpaceFile:
    """Read a tuning job's configuration, or bare `ParameterRanges`; bounds are text there, numbers here."""
    reader = Reader(source)
    config: Mapping[str, Any] = document
    if "HyperParameterTuningJobConfig" in document:
        config = reader.section(document, "HyperParameterTuningJobConfig", dict)
    ranges = reader.section(config, "ParameterRanges", dict) if "ParameterRanges" in config else config
    for section, type_name in _RANGES.items():
        for position, entry in enumerate(reader.section(ranges, section, list)):
            _read_entry(reader, entry, f"{section}[{position}]", type_name)
    if ranges.get("AutoParameters"):
        reader.mistakes.append("AutoParameters: name no range; give each of these parameters one")
    limits = reader.section(config, "ResourceLimits", dict)
    objective = reader.section(config, "HyperParameterTuningJobObjective", dict)
    return reader.finish(
        num_trials=reader.count("MaxNumberOfTrainingJobs", limits.get("MaxNumberOfTrainingJobs")),
        workers=reader.count("MaxParallelTrainingJobs", limits.get("MaxParallelTrainingJobs")),
        direction=reader.direction("Type", objective.get("Type")),
        metric=reader.text("MetricName", objective.get("MetricName")),
    )


def _read_entry(reader: Reader, entry: object, where: str, type_name: str) -> None:
    if type_name == "CATEGORICAL":
        name, keys = reader.entry(entry, where, "Name", ("Name", "Values"))
        if name:
            reader.specs[name] = (type_name, reader.section(keys, "Values", list))
        return
    name, keys = reader.entry(entry, where, "Name", ("Name", "MinValue", "MaxValue", "ScalingType"))
    ends = reader.range_of(name, keys, "MinValue", "MaxValue") if name else None
    if ends is not None:
        scale = reader.choice(f"{name}: ScalingType", keys.get("ScalingType"), _SCALES, "linear")
        reader.specs[name] = (type_name, ends, scale)
