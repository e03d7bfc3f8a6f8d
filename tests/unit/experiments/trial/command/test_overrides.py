"""Parameters as overrides, read back by Hydra's own parser and by OmegaConf."""

from __future__ import annotations

from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from cargobike.experiments.trial.command.overrides import as_override, write_overrides

VALUES = [
    *(1e-05, 3, True, False, None, float("inf")),
    *(
        "adam",
        "1",
        "1e-5",
        "null",
        "true",
        "a b",
        " a",
        "",
        "x=y",
        "a,b",
        "(q",
        "it's",
        'say "x"',
        "c:\\",
        "ü",
        "-x",
        "~",
    ),
    *([8, 8], ["a", "1"], (1, 2.5), {"depth": 2, "act": "relu"}, {"outer": {"inner": ["x"]}}),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_hydra_reads_the_value_that_was_written(value: Any) -> None:
    override = OverridesParser.create().parse_override(f"a={as_override(value)}")
    assert override.value() == (list(value) if isinstance(value, tuple) else value)


@pytest.mark.parametrize("value", [value for value in VALUES if value not in (float("inf"), "c:\\")], ids=repr)
def test_omegaconf_reads_the_value_that_was_written(value: Any) -> None:
    read = OmegaConf.to_container(OmegaConf.from_dotlist([f"a={as_override(value)}"]))
    assert read == {"a": list(value) if isinstance(value, tuple) else value}


@given(st.text(st.characters(codec="utf-8", exclude_characters="[]{}$"), max_size=8))
def test_hydra_reads_any_text(text: str) -> None:
    written = as_override(text)
    if text[:1] + text[-1:] in ("''", '""') and len(text) > 1:
        assert written == text  # the user has quoted it already
        return
    assert OverridesParser.create().parse_override(f"a={written}").value() == text


@pytest.mark.parametrize("text", ["[8,8]", "{depth: 2}", "'quoted'", "${seed}", "run-${seed}"])
def test_what_is_in_hydras_notation_stays_as_it_is(text: str) -> None:
    assert as_override(text) == text


def test_names_may_lead_into_the_configuration() -> None:
    params = {"optimizer": "adam", "optimizer.lr": 0.1, "+model.depth": 3, "db/engine": "lite"}
    assert write_overrides(params) == ["optimizer=adam", "optimizer.lr=0.1", "+model.depth=3", "db/engine=lite"]
