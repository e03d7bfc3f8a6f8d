"""What measurements find is kept by room, and put into one page."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

from rig import findings
from rig.findings import Finding
from rig.measuring import Target
from rooms import ROOMS, RoomProgram

DOCS = Path(__file__).resolve().parents[3] / "docs"
FIGURES = DOCS.parent / "benchmarks" / "figures.json"
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
    findings.keep(figures, {("data", "loaders"): Finding(SOME), ("models", "registry"): Finding(SOME[1:])}, "abc")
    findings.keep(figures, {("data", "loaders"): Finding(SOME[:1]), ("models", "registry"): Finding([])}, "def")
    kept = json.loads(figures.read_text())
    assert (kept["data"]["loaders"]["commit"], len(kept["data"]["loaders"]["targets"])) == ("def", 1)
    assert (kept["models"]["registry"]["commit"], len(kept["models"]["registry"]["targets"])) == ("abc", 1)


def test_the_table_stands_between_the_marks_of_a_page(tmp_path: Path) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "page.md"
    findings.keep(figures, {("data", "loaders"): Finding(SOME)}, "abc")
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
    assert shown.strip() == findings.render(FIGURES).strip()


def test_the_page_of_details_shows_what_is_kept(tmp_path: Path) -> None:
    findings.write_details(FIGURES, tmp_path / "details.md")
    assert (DOCS / "benchmarks-details.md").read_text() == (tmp_path / "details.md").read_text()


def test_what_was_printed_stands_in_the_page_of_details(tmp_path: Path) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "details.md"
    table = "### Rows\n\n| system | rows |\n| --- | --- |\n| a peer | 3 |"
    findings.keep(figures, {("data", "loaders"): Finding(SOME, table)}, "abc")
    findings.keep(figures, {("models", "registry"): Finding(SOME, "peer    12 ms\nours     1 ms")}, "def")
    findings.write_details(figures, page)
    text = page.read_text()
    assert "## Data\n\n### loaders\n" in text
    assert "\n#### Rows\n\n| system | rows |\n" in text
    assert "\n```text\npeer    12 ms\nours     1 ms\n```\n" in text


def test_a_program_that_fails_finds_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    program = RoomProgram(room="data", name="none", question="?", program="data/is_not_there.py")
    assert program.run("quick") == Finding([])
    assert "none ended with 2" in capfd.readouterr().err


@pytest.fixture
def printing(tmp_path: Path) -> RoomProgram:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, time\n"
        "from rig import findings\n"
        "print('a peer: 3 rows', flush=True)\n"
        "time.sleep(float(sys.argv[1]))\n"
        "findings.hand_on('rows', [findings.at_least('rows', 4.0, 3)])\n"
    )
    return RoomProgram(room="data", name="rows", question="?", program=str(program), usual=("0",), quick=("600",))


def test_what_a_program_prints_is_passed_on_and_reported(
    printing: RoomProgram, capfd: pytest.CaptureFixture[str]
) -> None:
    finding = printing.run("usual")
    assert finding == Finding([findings.at_least("rows", 4.0, 3)], "a peer: 3 rows")
    assert "a peer: 3 rows\n\n### Targets" in capfd.readouterr().out


def test_a_program_that_does_not_end_is_ended(printing: RoomProgram, capfd: pytest.CaptureFixture[str]) -> None:
    finding = dataclasses.replace(printing, timeout_s=0.0).run("quick")
    assert not finding.targets
    assert "rows did not end within 0 s" in capfd.readouterr().err


@pytest.mark.parametrize("program", ROOMS, ids=lambda program: program.name)
def test_programs_of_rooms_exist(program: RoomProgram) -> None:
    assert (DOCS.parent / "benchmarks" / program.program).is_file()
