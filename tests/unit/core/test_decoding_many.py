"""Many lines decoded at once are what each of them is by itself."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cargobike.core.facts import EXPERIMENT_FACTS, AnyFact, Reported, TrialSuggested, encode_fact

PAST = sorted((Path(__file__).parents[1] / "experiments" / "index" / "journals").glob("*.jsonl"))


def test_lines_of_every_version_are_decoded_alike() -> None:
    assert len(PAST) > 1
    for path in PAST:
        lines = path.read_bytes().splitlines()
        assert EXPERIMENT_FACTS.decode_all(lines) == [EXPERIMENT_FACTS.decode(line) for line in lines]


def test_exact_parameters_among_others_come_back() -> None:
    facts: list[AnyFact] = [
        Reported(at=1.0, trial=0, step=1, metrics={"loss": "nan"}),
        TrialSuggested(at=2.0, trial=1, params={"sizes": (3, 4), "x": 1}),
        Reported(at=3.0, trial=1, step=1, metrics={"loss": 0.5}),
    ]
    assert EXPERIMENT_FACTS.decode_all([encode_fact(fact) for fact in facts]) == facts
    assert EXPERIMENT_FACTS.decode_all([]) == []


@pytest.mark.parametrize("line", [b"{}", b'{"fact":"unheard"}', b"{", b"", b'{"fact":"reported"},{"fact":"reported"}'])
def test_one_that_cannot_be_decoded_is_refused(line: bytes) -> None:
    good = encode_fact(Reported(at=1.0, trial=0, step=1, metrics={}))
    with pytest.raises(msgspec.MsgspecError):
        EXPERIMENT_FACTS.decode_all([good, line, good])


def test_a_line_with_two_facts_is_refused() -> None:
    good = encode_fact(Reported(at=1.0, trial=0, step=1, metrics={}))
    with pytest.raises(msgspec.MsgspecError):
        EXPERIMENT_FACTS.decode_all([good, good + b"," + good])
