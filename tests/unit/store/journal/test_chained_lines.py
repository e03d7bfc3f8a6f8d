"""Lines that were dropped, doubled, swapped or taken from elsewhere are never read as if nothing had happened.

What the file says is checked by a parser of its own, written after the guide, which shares nothing with the reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from zlib import crc32

import pytest

from cargobike.core.errors import StoreError
from cargobike.core.facts import EXPERIMENT_FACTS, AnyFact, ExperimentEnded, Reported, TrialSuggested
from cargobike.store.journal import lines as lines_module
from cargobike.store.journal.journal import JournalReader, JournalWriter, read_journal
from cargobike.testing.journals import first_fact

OLD = Path(__file__).parents[2] / "experiments" / "index" / "journals" / "v2-first.jsonl"
COUNT = 6


def facts(experiment: str, start: float = 1.0) -> list[AnyFact]:
    return [
        first_fact(at=start, id=experiment, name="n"),
        TrialSuggested(at=start + 1, trial=0, params={"x": 1}),
        *(Reported(at=start + 2, trial=0, step=0, metrics={"x": 0.5}) for _ in range(COUNT - 3)),  # all alike
        ExperimentEnded(at=start + 3, state="completed"),
    ]


def write(path: Path, experiment: str, start: float = 1.0) -> list[bytes]:
    with JournalWriter(path) as writer:
        for fact in facts(experiment, start):
            writer.append([fact])
    return path.read_bytes().splitlines(keepends=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


@pytest.fixture
def lines(path: Path) -> list[bytes]:
    return write(path, "20270101-000000-aaaa")


@pytest.fixture
def foreign(tmp_path: Path) -> list[bytes]:
    return write(tmp_path / "other.jsonl", "20270101-000000-bbbb")


def assert_follows_the_guide(content: bytes, *, chained_from: int = 1) -> None:
    """Check each line's checksum, number and predecessor, from one line on."""
    prev = "00000000"
    assert content.endswith(b"\n")
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        keys = json.loads(line)
        assert int(keys["crc"], 16) == crc32(line[: line.rindex(b',"crc"')])
        if number >= chained_from:
            assert list(keys)[-3:] == ["line", "prev", "crc"]
            assert (keys["line"], keys["prev"]) == (number, prev)
        prev = keys["crc"]


def assert_is_refused(path: Path, lines: list[bytes], match: str, good: int) -> None:
    """Every way to read such a journal refuses it, and no writer touches it."""
    content = b"".join(lines)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=match):
        list(read_journal(path, EXPERIMENT_FACTS))
    for start in range(good + 1):
        reader = JournalReader(path, EXPERIMENT_FACTS, len(b"".join(lines[:start])))
        if start < good:
            assert len(reader.read_new()) == good - start
        with pytest.raises(StoreError, match=match):
            reader.read_new()
        with pytest.raises(StoreError, match=match):
            JournalWriter(path, start_at=len(b"".join(lines[:start])))
    assert path.read_bytes() == content


def test_lines_are_numbered_and_chained_as_the_guide_says(path: Path, lines: list[bytes]) -> None:
    assert len(lines) == COUNT
    assert_follows_the_guide(path.read_bytes())


@pytest.fixture(params=[1, 50, 1 << 20])
def _block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", request.param)


@pytest.mark.usefixtures("_block_bytes")
def test_a_missing_line_is_found(path: Path, lines: list[bytes]) -> None:
    for missing in range(COUNT - 1):
        left = [line for at, line in enumerate(lines) if at != missing]
        assert_is_refused(path, left, f"line {missing + 1}: line {missing + 1} is missing before it", missing)
    assert_is_refused(path, [lines[0], *lines[4:]], "line 2: lines 2 to 4 are missing before it", 1)


@pytest.mark.usefixtures("_block_bytes")
def test_a_line_that_comes_twice_is_found(path: Path, lines: list[bytes]) -> None:
    for twice in range(COUNT):
        for at in range(twice + 1, COUNT + 1):
            doubled = [*lines[:at], lines[twice], *lines[at:]]
            assert_is_refused(path, doubled, f"line {at + 1}: it comes twice, and is line {twice + 1}", at)


@pytest.mark.usefixtures("_block_bytes")
def test_lines_that_changed_places_are_found(path: Path, lines: list[bytes]) -> None:
    for one, other in combinations(range(COUNT), 2):
        swapped = list(lines)
        swapped[one], swapped[other] = lines[other], lines[one]
        place = f"line {one + 1}: it stands in the wrong place, and is line {other + 1}"
        assert_is_refused(path, swapped, place, one)


def test_a_line_of_another_journal_is_found(path: Path, lines: list[bytes], foreign: list[bytes]) -> None:
    for at in range(1, COUNT):
        replaced = [*lines[:at], foreign[at], *lines[at + 1 :]]
        assert_is_refused(path, replaced, f"line {at + 1}: it belongs to another journal", at)
        for strange in foreign[1:]:
            inserted = [*lines[:at], strange, *lines[at:]]
            assert_is_refused(path, inserted, f"line {at + 1}: it belongs to another journal", at)
    assert_is_refused(path, [*lines, foreign[-1]], "line 7: it belongs to another journal", COUNT)


def test_two_courses_of_one_experiment_do_not_mix(path: Path, lines: list[bytes]) -> None:
    courses = []
    for step in (7, 8):
        path.write_bytes(b"".join(lines[:3]))
        with JournalWriter(path) as writer:
            writer.append([Reported(at=9.0, trial=0, step=step, metrics={}), ExperimentEnded(at=9.0, state="failed")])
        courses.append(path.read_bytes().splitlines(keepends=True))
    assert_is_refused(path, [*courses[0][:4], courses[1][4]], "line 5: it belongs to another journal", 4)


def test_a_line_without_a_number_has_no_place_in_a_numbered_journal(path: Path, lines: list[bytes]) -> None:
    old = OLD.read_bytes().splitlines(keepends=True)
    assert_is_refused(path, [*lines, old[-1]], "line 7: it has no number", COUNT)


@pytest.mark.parametrize("start_at_end", [True, False])
def test_an_old_journal_is_continued_with_a_chain(path: Path, *, start_at_end: bool) -> None:
    old = OLD.read_bytes().splitlines(keepends=True)
    for kept in (1, len(old)):
        path.write_bytes(b"".join(old[:kept]))
        start_at = path.stat().st_size if start_at_end else None
        with JournalWriter(path, start_at=start_at) as writer:
            writer.append(facts("x")[1:3])
        with JournalWriter(path) as writer:
            writer.append(facts("x")[3:])
        assert_follows_the_guide(path.read_bytes(), chained_from=kept + 1)
        assert [*read_journal(path, EXPERIMENT_FACTS)][kept:] == facts("x")[1:]
        new = path.read_bytes().splitlines(keepends=True)
        assert_is_refused(
            path, [*new[: kept + 1], *new[kept + 2 :]], f"line {kept + 2}: line {kept + 2} is miss", kept + 1
        )
        assert_is_refused(path, [*new[: kept - 1], *new[kept:]], f"line {kept + 1} is|line {kept} is missing", kept - 1)
        path.write_bytes(b"".join([*new, old[-1]]))  # by an old version, which can read a journal that it has begun
        assert len(list(read_journal(path, EXPERIMENT_FACTS))) == len(new) + 1


def _replaced_by_longer(path: Path, lines: list[bytes]) -> bytes:
    return b"".join(lines).replace(b'"name":"n"', b'"name":"another"')


def _one_byte_more(path: Path, lines: list[bytes]) -> bytes:
    return b" " + b"".join(lines)


@pytest.mark.parametrize("change", [_replaced_by_longer, _one_byte_more])
def test_a_reader_notices_that_no_line_ends_where_it_stopped(
    path: Path, lines: list[bytes], change: Callable[[Path, list[bytes]], bytes]
) -> None:
    reader = JournalReader(path, EXPERIMENT_FACTS)
    path.write_bytes(b"".join(lines[:3]))
    assert len(reader.read_new()) == 3
    path.write_bytes(change(path, lines))
    with pytest.raises(StoreError, match=r"is not what it was: no line ends at byte .*; read it anew"):
        reader.read_new()


def test_a_batch_that_failed_leaves_no_gap_in_the_chain(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JournalWriter(path) as writer:
        writer.append(facts("x")[:2])

        def refuse(fd: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.write", refuse)
            with pytest.raises(StoreError, match="no room left"):
                writer.append(facts("x")[2:])
        writer.append(facts("x")[2:])
    assert_follows_the_guide(path.read_bytes())
    assert list(read_journal(path, EXPERIMENT_FACTS)) == facts("x")


def test_a_reader_of_one_thing_refuses_the_journal_of_another(path: Path, lines: list[bytes]) -> None:
    own = JournalReader(path, EXPERIMENT_FACTS, of="20270101-000000-aaaa")
    assert len(own.read_new()) == len(lines)
    other = JournalReader(path, EXPERIMENT_FACTS, of="20270101-000000-cccc")
    with pytest.raises(StoreError, match="is the journal of 20270101-000000-aaaa, not of 20270101-000000-cccc"):
        other.read_new()
