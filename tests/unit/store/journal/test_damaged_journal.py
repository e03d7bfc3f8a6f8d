"""Damage of every kind at every place of a journal, read with every size of block: no line is ever lost without a word.

What a journal holds is known here from the bytes that were written; nothing is asked of the code that reads it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cargobike.core.errors import StoreError
from cargobike.core.facts import EXPERIMENT_FACTS, AnyFact, ExperimentEnded, TrialEnded, TrialSuggested
from cargobike.store.journal import lines as lines_module
from cargobike.store.journal.journal import JournalReader, JournalWriter, read_journal
from cargobike.testing.journals import first_fact

FACTS: list[AnyFact] = [
    first_fact(at=1.0, id="20270101-000000-aaaa", name="n"),
    TrialSuggested(at=2.0, trial=0, params={"x": 1}),
    TrialEnded(at=3.0, trial=0, state="completed", value=0.5),
    ExperimentEnded(at=4.0, state="completed"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def write(path: Path, facts: list[AnyFact]) -> list[bytes]:
    """Write a journal; returns its lines."""
    path.unlink(missing_ok=True)
    with JournalWriter(path) as writer:
        writer.append(facts)
    return path.read_bytes().splitlines(keepends=True)


def read_by_all(path: Path) -> list[AnyFact]:
    """Read a journal in both ways, which must agree; raises if they do."""
    try:
        whole = list(read_journal(path, EXPERIMENT_FACTS))
    except StoreError:
        with pytest.raises(StoreError):
            read_piecewise(path)
        raise
    assert read_piecewise(path) == whole
    return whole


def read_piecewise(path: Path) -> list[AnyFact]:
    reader, facts = JournalReader(path, EXPERIMENT_FACTS), list[AnyFact]()
    while new := reader.read_new():
        facts += new
    return facts


def test_damage_before_the_last_line_is_found_with_every_size_of_block(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = write(path, FACTS)
    damaged = lines[2].replace(b'"value":0.5', b'"value":0.7')
    content = b"".join([*lines[:2], damaged, lines[3]])
    path.write_bytes(content)
    for block_bytes in range(1, len(content) + 2):
        monkeypatch.setattr(lines_module, "BLOCK_BYTES", block_bytes)
        with pytest.raises(StoreError, match="line 3: damaged"):
            read_by_all(path)
        with pytest.raises(StoreError, match="line 3: damaged"):
            JournalWriter(path)
        assert path.read_bytes() == content


@pytest.mark.parametrize("block_bytes", [1, 61, 64, 1 << 20])
def test_a_byte_changed_anywhere_costs_no_line_but_the_last(
    path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", block_bytes)
    lines = write(path, FACTS)
    content = b"".join(lines)
    start_of_last = len(content) - len(lines[-1])
    found = 0
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x40]) + content[place + 1 :])
        if place >= start_of_last:
            assert read_by_all(path) == FACTS[:-1]
        else:
            found += 1
            number = content[:place].count(b"\n") + 1
            with pytest.raises(StoreError, match=f"line {number}: damaged"):
                read_by_all(path)
    assert found == start_of_last


def test_a_write_that_takes_a_few_bytes_at_a_time_writes_all_of_them(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = b"".join(write(path, FACTS))
    real_write = os.write
    for most in (1, 7, len(whole) - 1):
        path.unlink()
        with JournalWriter(path) as writer, monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda fd, data, most=most: real_write(fd, bytes(data[:most])))
            writer.append(FACTS)
            assert writer.offset == len(whole)
        assert path.read_bytes() == whole
        assert read_by_all(path) == FACTS


def test_with_power_the_names_of_a_new_journal_are_flushed_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = list[Path]()
    monkeypatch.setattr(os, "fsync", lambda fd: flushed.append(Path(f"/proc/self/fd/{fd}").readlink()))
    journal = path.parent / "experiments" / "one" / path.name
    with JournalWriter(journal, durability="power"):
        assert set(flushed) == {journal.parent, journal.parent.parent, path.parent}
    flushed.clear()
    with JournalWriter(path):
        assert flushed == []
