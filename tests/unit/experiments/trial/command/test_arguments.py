"""Placeholders of a command line."""

from __future__ import annotations

import pytest

from cargobike.experiments.trial.command.arguments import as_text, fill, fill_variables, placeholders

KNOWN = {"folder": "/p/files/0003", "trial": "0003", "seed": 7}


@pytest.mark.parametrize(
    ("arguments", "params", "filled"),
    [
        (["--lr", "{lr}"], {"lr": 1e-4}, ["--lr", "0.0001"]),
        (["lr={lr}", "model.depth={depth}"], {"lr": 0.1, "depth": 3}, ["lr=0.1", "model.depth=3"]),
        (["--out={folder}/{trial}.pt", "{seed}"], {}, ["--out=/p/files/0003/0003.pt", "7"]),
        (
            ["{flags}"],
            {"lr": 0.1, "text": "a b", "amp": True, "x": False},
            ["--lr", "0.1", "--text", "a b", "--amp"],
        ),
        (["{flags}"], {"bias": -1e-05, "name": "-x", "n": 1}, ["--bias=-1e-05", "--name=-x", "--n", "1"]),
        (["{overrides}"], {"lr": 0.1, "amp": True, "name": "a=b"}, ["lr=0.1", "amp=true", "name='a=b'"]),
        (["{{lr}}", '{"a": {"b": 1}}', "${HOME}", "{}"], {"lr": 1}, ["{lr}", '{"a": {"b": 1}}', "${HOME}", "{}"]),
        (["--text", "{text}"], {"text": "$(rm -rf /); {seed} 'x'"}, ["--text", "$(rm -rf /); {seed} 'x'"]),
        (["{seed}"], {"seed": 99}, ["99"]),
    ],
)
def test_arguments_are_filled(arguments: list[str], params: dict[str, object], filled: list[str]) -> None:
    assert fill(arguments, params, KNOWN) == filled


def test_a_parameter_that_does_not_exist_takes_its_option_along() -> None:
    arguments = ["train.py", "--lr", "{lr}", "--momentum", "{momentum}", "nesterov={nesterov}", "{last}"]
    assert fill(arguments, {"lr": 1}, KNOWN) == ["train.py", "--lr", "1"]


def test_names_are_found_once() -> None:
    assert placeholders(["{a}", "--x={b}{a}", "{{c}}", "{1}", "{ d }"]) == ["a", "b"]


def test_variables_are_filled_and_left_out_like_arguments() -> None:
    variables = {"LR": "{lr}", "RUN": "run-{trial}", "MOMENTUM": "{momentum}"}
    assert fill_variables(variables, {"lr": 0.5}, KNOWN) == {"LR": "0.5", "RUN": "run-0003"}


@pytest.mark.parametrize(("value", "text"), [(1.0, "1.0"), (None, "null"), ((1, "a"), '[1, "a"]'), (False, "false")])
def test_values_are_written_as_programs_read_them(value: object, text: str) -> None:
    assert as_text(value) == text
