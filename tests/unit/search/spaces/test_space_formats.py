from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.errors import SpaceError
from cargobike.search.spaces.formats import SpaceFile, as_space, read_space
from cargobike.search.spaces.space import Searchspace

CLOUDML = """
trainingInput:
  scaleTier: CUSTOM
  hyperparameters:
    goal: MAXIMIZE
    hyperparameterMetricTag: accuracy
    maxTrials: 30
    maxParallelTrials: 3
    enableTrialEarlyStopping: true
    params:
    - parameterName: lr
      type: DOUBLE
      minValue: 1e-4
      maxValue: 0.1
      scaleType: UNIT_LOG_SCALE
    - parameterName: momentum
      type: DOUBLE
      minValue: 0.9
      maxValue: 0.999
      scaleType: UNIT_REVERSE_LOG_SCALE
    - parameterName: layers
      type: integer
      minValue: 1
      maxValue: 5
      scaleType: UNIT_LINEAR_SCALE
    - parameterName: batch
      type: DISCRETE
      discreteValues: [32, 64, 1e2]
      scaleType: NONE
    - parameterName: act
      type: CATEGORICAL
      categoricalValues: [relu, gelu]
"""
CLOUDML_SPACE = Searchspace(
    lr=("DOUBLE", [1e-4, 0.1], "log"),
    momentum=("DOUBLE", [0.9, 0.999], "reverse-log"),
    layers=("INTEGER", [1, 5]),
    batch=("DISCRETE", [32, 64, 100.0]),
    act=("CATEGORICAL", ["relu", "gelu"]),
)

SAGEMAKER: dict[str, Any] = {
    "HyperParameterTuningJobName": "job",
    "HyperParameterTuningJobConfig": {
        "Strategy": "Bayesian",
        "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "validation:error"},
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 20, "MaxParallelTrainingJobs": 2},
        "ParameterRanges": {
            "ContinuousParameterRanges": [
                {"Name": "eta", "MinValue": "1e-3", "MaxValue": "1", "ScalingType": "Logarithmic"},
                {"Name": "alpha", "MinValue": "0", "MaxValue": "2", "ScalingType": "Auto"},
                {"Name": "beta", "MinValue": "0.5", "MaxValue": "0.999", "ScalingType": "ReverseLogarithmic"},
            ],
            "IntegerParameterRanges": [{"Name": "max_depth", "MinValue": "1", "MaxValue": "10"}],
            "CategoricalParameterRanges": [{"Name": "booster", "Values": ["gbtree", "32"]}],
        },
    },
}
SAGEMAKER_SPACE = Searchspace(
    eta=("DOUBLE", [1e-3, 1], "log"),
    alpha=("DOUBLE", [0, 2]),
    beta=("DOUBLE", [0.5, 0.999], "reverse-log"),
    max_depth=("INTEGER", [1, 10]),
    booster=("CATEGORICAL", ["gbtree", "32"]),
)

OWN = """
num_trials: 20
workers: 4
direction: max
metric: accuracy
space:
  lr: {double: [1e-4, 1E-1], scale: log}
  layers: {integer: [1, 5]}
  optimizer: [sgd, adam]
  momentum: {double: [0.0, 0.9], step: 0.1, when: &sgd {optimizer: sgd}}
  nesterov: {categorical: [true, false], when: *sgd}
  sizes: [[64, 64], [128]]
  decay: [1e-5, 1e-4]
"""
OWN_SPACE = Searchspace(
    lr=("DOUBLE", [1e-4, 1e-1], "log"),
    layers=("INTEGER", [1, 5]),
    optimizer=["sgd", "adam"],
    momentum=("DOUBLE", [0.0, 0.9], {"step": 0.1, "when": {"optimizer": "sgd"}}),
    nesterov=("CATEGORICAL", [True, False], {"when": {"optimizer": "sgd"}}),
    sizes=[(64, 64), (128,)],
    decay=[1e-5, 1e-4],
)


def test_cloudml_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(CLOUDML)
    expected = SpaceFile(space=CLOUDML_SPACE, num_trials=30, workers=3, direction="max", metric="accuracy")
    assert read_space(path) == expected
    assert read_space(str(path)) == expected
    assert read_space(CLOUDML) == expected
    assert as_space(str(path)) == CLOUDML_SPACE


def test_cloudml_may_start_at_hyperparameters() -> None:
    entry = "{parameterName: n, type: INTEGER, minValue: '1', maxValue: 3}"
    found = read_space(f"hyperparameters: {{goal: MINIMIZE, params: [{entry}]}}\n")
    assert found == SpaceFile(space=Searchspace(n=("INTEGER", [1, 3])), direction="min")


def test_sagemaker_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    path.write_text(json.dumps(SAGEMAKER))
    found = read_space(path)
    assert found == SpaceFile(
        space=SAGEMAKER_SPACE, num_trials=20, workers=2, direction="min", metric="validation:error"
    )


def test_sagemaker_may_be_bare() -> None:
    config = SAGEMAKER["HyperParameterTuningJobConfig"]
    assert read_space(config).num_trials == 20
    assert read_space({"ParameterRanges": config["ParameterRanges"]}) == SpaceFile(space=SAGEMAKER_SPACE)
    assert read_space(config["ParameterRanges"]) == SpaceFile(space=SAGEMAKER_SPACE)


def test_our_own_form_is_read_with_settings_and_without(tmp_path: Path) -> None:
    expected = SpaceFile(space=OWN_SPACE, num_trials=20, workers=4, direction="max", metric="accuracy")
    assert read_space(OWN) == expected
    path = tmp_path / "space.yml"
    path.write_bytes(b"\xef\xbb\xbf" + b"lr: {double: [1e-4, 1]}\nact: [relu]\n")
    assert read_space(path) == SpaceFile(space=Searchspace(lr=("DOUBLE", [1e-4, 1]), act=["relu"]))


def test_our_own_form_may_be_json(tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    path.write_text('{"lr": {"double": [1e-4, 1]}, "sizes": [[1, 2], [3]]}')
    assert as_space(path) == Searchspace(lr=("DOUBLE", [1e-4, 1]), sizes=[(1, 2), (3,)])


def test_a_file_may_list_the_trials(tmp_path: Path) -> None:
    path = tmp_path / "trials.yaml"
    path.write_text("- {lr: 1e-4, sizes: [64, 32]}\n- {lr: 0.1}\n")
    assert as_space(path) == [{"lr": 1e-4, "sizes": [64, 32]}, {"lr": 0.1}]


def test_quotes_keep_text_text() -> None:
    found = read_space('a: ["1e-4", x]\nb: [1e3, 2]\nc: [1.5e3, -2E+2]\n').space
    assert found == Searchspace(a=["1e-4", "x"], b=[1000.0, 2], c=[1500.0, -200.0])


MISTAKES: list[tuple[str, list[str]]] = [
    (
        """
hyperparameters:
  goal: BEST
  maxTrials: -1
  maxParallelTrials: many
  hyperparameterMetricTag: [a]
  params:
  - {parameterName: a, type: FLOAT, minValue: 1, maxValue: 2}
  - {parameterName: b, type: DOUBLE, minValue: 2, maxValue: 1, scaleType: UNIT_LOG}
  - {parameterName: c, type: DOUBLE, minvalue: 2}
  - {type: DOUBLE, minValue: 2, maxValue: 3}
  - {parameterName: d, type: DISCRETE}
  - {parameterName: e}
  - {parameterName: b, type: CATEGORICAL, categoricalValues: x}
  - 7
""",
        [
            "goal: must be maximize or minimize, not 'BEST'",
            "maxTrials: must be a whole number of at least 1, not -1",
            "maxParallelTrials: must be a whole number of at least 1, not 'many'",
            "hyperparameterMetricTag: must be text",
            "a: type: unknown 'FLOAT'",
            "b: scaleType: unknown 'UNIT_LOG'",
            "Did you mean 'UNIT_LOG_SCALE'?",
            "c: unknown key 'minvalue'",
            "Did you mean 'minValue'?",
            "c: minValue is missing",
            "c: maxValue is missing",
            "params[3]: parameterName is missing",
            "d: there is no value to choose from",
            "e: type is missing",
            "b: declared twice",
            "categoricalValues: must be a list, not 'x'",
            "params[7]: must be a mapping",
        ],
    ),
    (
        """
ParameterRanges:
  ContinuousParameterRanges:
  - {Name: a, MinValue: "x", MaxValue: "1"}
  - {Name: b, MinValue: "0", MaxValue: "1", ScalingType: Logarithmic}
  - {Name: c, MinValue: "0", MaxValue: "1", ScalingType: Log}
  IntegerParameterRanges: {}
  CategoricalParameterRanges: [{Name: d, Values: [x, x], Extra: 1}]
  AutoParameters: [{Name: e, ValueHint: "1"}]
ResourceLimits: {MaxNumberOfTrainingJobs: 0}
HyperParameterTuningJobObjective: {Type: Up}
""",
        [
            "a: a bound must be a number, not 'x'",
            "b: a log scale needs low above 0",
            "c: ScalingType: unknown 'Log'",
            "IntegerParameterRanges: must be a list",
            "d: unknown key 'Extra'",
            "d: 'x' is listed twice",
            "AutoParameters",
            "MaxNumberOfTrainingJobs: must be a whole number",
            "Type: must be maximize or minimize, not 'Up'",
        ],
    ),
    (
        """
num_trial: 5
workers: true
direction: up
metric: 5
space:
  a: {dobule: [0, 1]}
  b: 5
  7: [1]
  c: {double: [0, 1], when: {zz: 1}}
""",
        [
            "unknown key 'num_trial'",
            "Did you mean 'num_trials'?",
            "workers: must be a whole number",
            "direction: must be maximize or minimize, not 'up'",
            "metric: must be text, not 5",
            "a: {'dobule': [0, 1]} must have exactly one of the keys",
            "b: 5 is not a specification",
            "a parameter's name must be a string with at least one character, not 7",
            "c: depends on 'zz'",
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_all_mistakes_of_a_file_come_at_once(text: str, expected: list[str]) -> None:
    with pytest.raises(SpaceError) as caught:
        read_space(text)
    message = str(caught.value)
    assert [part for part in expected if part not in message] == []


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{previous}'] * 9)}]\n"
    for previous, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a: &a {x: [1]}\n" + "".join(
    f"k{number}: &k{number} {{'<<': [{', '.join([f'*k{number - 1}' if number else '*a'] * 20)}]}}\n"
    for number in range(12)
)
HOSTILE: list[tuple[str, str]] = [
    (BOMB, "more than 50000 entries"),
    (MERGE_BOMB, "more than 50000 entries|given twice"),
    ("a: &a [*a]\n", "contains itself"),
    ("&a a: {b: *a}\n&b c: [*b]\n", "a: |must"),
    ("- " * 20_000 + "\n", "nested too deeply"),
    ("a: [" + "x, " * 100_000 + "]\n", "longer than 256 KiB"),
    ("a: !!python/object/apply:os.system ['true']\n", "not valid YAML"),
    ("a: [1, 2\n", "not valid YAML"),
    ("a: [2001-99-99]\n", "not valid YAML"),
    ("a: [2001-01-01]\n", "is not plain data"),
    ("a: [!!binary aGVsbG8=]\n", "is not plain data"),
    ("a: [1]\na: [2]\n", "'a' is given twice"),
    ("? [x]\n: [1]\n", "not valid YAML|name must be a string"),
    ("a: [.nan]\n", "not a finite number"),
    ("a: {double: [0, .inf]}\n", "not a finite number"),
    ("a: [1e999]\n", "not a finite number"),
    ("a: [12:30.5]\n", "looks like a time of day"),
    ("a: [" + "9" * 5000 + "]\n", "not valid YAML"),
    ("a: 1\n---\nb: 2\n", "not valid YAML"),
    ("\x00\n", "not valid YAML"),
    ("", "must hold a mapping"),
    ("just text\n", "must hold a mapping"),
    ("{}\n", "names no parameter"),
    ("[]\n", "list is empty"),
    ("hyperparameters: {}\n", "names no parameter"),
    ("trainingInput: {}\n", "names no parameter"),
    ("HyperParameterTuningJobConfig: 5\n", "must be a mapping"),
    ("hyperparameters: {params: {}}\n", "params: must be a list"),
]


@pytest.mark.parametrize(("text", "message"), HOSTILE)
def test_hostile_yaml_ends_in_a_space_error(text: str, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        read_space(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON"),
        (b'{"a": [1], "a": [2]}', "'a' is given twice"),
        (b'{"a": [NaN]}', "not a finite number"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' + b"[" * 800 + b"]" * 800 + b"}", "nested too deeply|plain data|unhashable"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b" " * 300_000, "larger than 256 KiB"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b"null", "must hold a mapping"),
    ],
)
def test_hostile_json_ends_in_a_space_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "space.json"
    path.write_bytes(content)
    with pytest.raises(SpaceError, match=message):
        read_space(path)


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text("a: [1]")
    with pytest.raises(SpaceError, match=r"no such file. Did you mean 'space.yaml'\?"):
        read_space(tmp_path / "spaec.yaml")
    with pytest.raises(SpaceError, match="no such file"):
        read_space(tmp_path / "nowhere" / "space.yaml")
    with pytest.raises(SpaceError, match=r"ends in \.yaml"):
        read_space(tmp_path / "space.toml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(SpaceError, match="no such file"):
        read_space(tmp_path / "folder.yaml")


def test_a_dict_of_lists_is_a_grid_in_order() -> None:
    space = as_space({"lr": [0.1, 0.01, 0.001], "layers": [3, 2], "act": ["relu", None], "flag": [True, False]})
    assert isinstance(space, Searchspace)
    assert [space[name].type for name in space] == ["DISCRETE", "DISCRETE", "CATEGORICAL", "CATEGORICAL"]
    first, *_, last = space.grid()
    assert first == {"lr": 0.1, "layers": 3, "act": "relu", "flag": True}
    assert last == {"lr": 0.001, "layers": 2, "act": None, "flag": False}


def test_a_space_is_taken_as_it_is() -> None:
    assert as_space(OWN_SPACE) is OWN_SPACE


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "is not a search space"),
        (None, "is not a search space"),
        ("space", "is not a search space"),
        ({"lr": 5}, r"\[5\] for a fixed value"),
        ([], "list is empty"),
        ([{"a": 1}, 5, {"b": object()}, {3: 1}], "number 1: must be a dict"),
    ],
)
def test_what_is_no_space_is_refused(given: object, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        as_space(given)


def test_yaml_is_loaded_only_for_a_yaml_file() -> None:
    code = (
        "import sys; from cargobike.search.spaces.formats import as_space; as_space({'a': [1]}); "
        "assert 'yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_values_that_nest_without_end_are_refused() -> None:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(SpaceError, match="nested too deeply: more than 100 lists"):
        Searchspace.from_description([{"name": "x", "type": "CATEGORICAL", "values": [value, 2]}])
