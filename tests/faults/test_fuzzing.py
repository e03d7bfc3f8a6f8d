"""Every parser gets the inputs that have failed once, and some thousand new ones; `make fuzz` tries a million."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.fuzzing.fuzzer import CORPUS, Fuzzer, watched
from faults.fuzzing.targets import Target, all_targets

INPUTS = 6000
SEED = 20270115


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
    with all_targets(tmp_path_factory.mktemp("fuzzing")) as targets, watched():
        yield targets


def test_parsers_refuse_what_they_cannot_read_in_their_own_words(targets: dict[str, Target]) -> None:
    share = INPUTS / sum(target.weight for target in targets.values())
    mistakes = []
    for target in targets.values():
        fuzzer = Fuzzer(target, SEED)
        fuzzer.run(max(10, round(share * target.weight)))
        assert fuzzer.tried > 10
        mistakes += [f"{mistake.target}: {mistake.data[:300]!r}\n{mistake.what}" for mistake in fuzzer.mistakes]
    assert mistakes == [], "\n".join(mistakes)


def test_what_is_kept_belongs_to_a_parser(targets: dict[str, Target]) -> None:
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} <= set(targets)
    assert not any(path.stat().st_size > 100_000 for path in CORPUS.rglob("*") if Path.is_file(path))


def test_the_same_seed_tries_the_same_inputs(targets: dict[str, Target]) -> None:
    tried: list[list[bytes]] = []
    for _ in range(2):
        inputs: list[bytes] = []
        target = targets["from-worker"]
        watching = Target(target.name, inputs.append, target.examples, target.form)
        Fuzzer(watching, 7).run(200)
        tried.append(inputs)
    assert tried[0] == tried[1]
    assert len(set(tried[0])) > 100
