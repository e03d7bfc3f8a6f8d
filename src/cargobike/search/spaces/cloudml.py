"""Google Cloud ML Engine's hyperparameter specification, as its job files hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cargobike.search.spaces.file import Reader, SpaceFile, number_in
from cargobike.search.spaces.parameter import TYPE_NAMES

_KEYS = (
    "parameterName",
    "type",
    "minValue",
    "maxValue",
    "scaleType",
    "discreteValues",
    "categoricalValues",
)
_TYPES: dict[str, str] = {name: name for name in TYPE_NAMES}
_SCALES = {
    "UNIT_LINEAR_SCALE": "linear",
    "UNIT_LOG_SCALE": "log",
    "UNIT_REVERSE_LOG_SCALE": "reverse-log",
    "NONE": "linear",
    "SCALE_TYPE_UNSPECIFIED": "linear",
}


def is_cloudml(document: Mapping[str, Any]) -> bool:
    """Tell whether a document is one of these."""
    return any(isinstance(document.get(key), Mapping) for key in ("trainingInput", "hyperparameters"))


def read_cloudml(document: Mapping[str, Any], source: str) -> SpaceFile:
    """Read `hyperparameters`, at the top or in `trainingInput`; what else a job file holds is passed over."""
    reader = Reader(source)
    outer = reader.section(document, "trainingInput", dict) if "trainingInput" in document else document
    section = reader.section(outer, "hyperparameters", dict)
    for position, entry in enumerate(reader.section(section, "params", list)):
        name, keys = reader.entry(entry, f"params[{position}]", "parameterName", _KEYS)
        if name:
            _read_entry(reader, name, keys)
    return reader.finish(
        num_trials=reader.count("maxTrials", section.get("maxTrials")),
        workers=reader.count("maxParallelTrials", section.get("maxParallelTrials")),
        direction=reader.direction("goal", section.get("goal")),
        metric=reader.text("hyperparameterMetricTag", section.get("hyperparameterMetricTag")),
    )


def _read_entry(reader: Reader, name: str, keys: Mapping[str, Any]) -> None:
    if keys.get("type") is None:
        reader.mistakes.append(f"{name}: type is missing; known are {', '.join(TYPE_NAMES)}")
        return
    type_name = reader.choice(f"{name}: type", keys["type"], _TYPES, "")
    scale = reader.choice(f"{name}: scaleType", keys.get("scaleType"), _SCALES, "linear")
    if type_name in ("DOUBLE", "INTEGER"):
        ends = reader.range_of(name, keys, "minValue", "maxValue")
        if ends is not None:
            reader.specs[name] = (type_name, ends, scale)
    elif type_name:
        # A scale of listed values means nothing here: each of them is as likely as the others.
        key = "discreteValues" if type_name == "DISCRETE" else "categoricalValues"
        values = reader.section(keys, key, list)
        chosen = [number_in(value) for value in values] if type_name == "DISCRETE" else values
        reader.specs[name] = (type_name, chosen)
