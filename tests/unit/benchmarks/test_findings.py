"""What measurements find is kept by room, and put into one page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

from rig import findings
from rig.measuring import Target
from rooms import ROOMS, RoomProgram

DOCS = Path(__file__).resolve().parents[3] / "docs"
SOME = [findings.at_least("times a peer", 12.34, 10, " ×", gate=True), findings.at_most("ms", 3.0, 2)]


def test_figures_are_judged_by_their_bounds() -> None:
    assert [(target.found, target.met, target.kind) for target in SOME] == [
        ("12.3 ×", True, "gate"),
        ("3", False, "information"),
    ]
    assert findings.at_most("ms", None, 2) == Target(text="ms", found="not measured", met=None, kind="information")


def test_what_a_program_hands_on_is_read_by_the_one_that_started_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "findings.json"
    monkeypatch.setenv(findings.FINDINGS, str(path))
    findings.hand_on("speed", SOME)
    assert findings.read_handed_on(path) == SOME
    assert "times a peer" in capsys.readouterr().out
    assert findings.read_handed_on(tmp_path / "other.json") == []


def test_a_measurement_replaces_what_it_found_before_and_nothing_else(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    findings.keep(figures, {("data", "loaders"): SOME, ("models", "registry"): SOME[1:]}, "abc")
    findings.keep(figures, {("data", "loaders"): SOME[:1], ("models", "registry"): []}, "def")
    kept = json.loads(figures.read_text())
    assert (kept["data"]["loaders"]["commit"], len(kept["data"]["loaders"]["targets"])) == ("def", 1)
    assert (kept["models"]["registry"]["commit"], len(kept["models"]["registry"]["targets"])) == ("abc", 1)


def test_the_table_stands_between_the_marks_of_a_page(tmp_path: Path) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "page.md"
    findings.keep(figures, {("data", "loaders"): SOME}, "abc")
    page.write_text(f"before\n{findings.BEGIN}\nold\n{findings.END}\nafter\n")
    findings.write_page(figures, page)
    text = page.read_text()
    assert text.startswith(f"before\n{findings.BEGIN}\n| room")
    assert text.endswith(f"{findings.END}\nafter\n")
    assert "| **missed** |" in text
    assert "old" not in text
    findings.write_page(figures, page)
    assert page.read_text() == text


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="lacks the lines"):
        findings.write_page(tmp_path / "figures.json", page)


def test_the_page_of_the_documentation_shows_the_figures_that_are_kept() -> None:
    text = (DOCS / "benchmarks.md").read_text()
    shown = text.partition(findings.BEGIN)[2].partition(findings.END)[0]
    assert shown.strip() == findings.render(DOCS.parent / "benchmarks" / "figures.json").strip()


def test_a_program_that_fails_finds_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    program = RoomProgram(room="data", name="none", question="?", program="data/is_not_there.py")
    assert program.run("quick") == []
    assert "none ended with 2" in capfd.readouterr().err


@pytest.mark.parametrize("program", ROOMS, ids=lambda program: program.name)
def test_programs_of_rooms_exist(program: RoomProgram) -> None:
    assert (DOCS.parent / "benchmarks" / program.program).is_file()
