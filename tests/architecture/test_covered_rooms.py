"""The table of what was run of each room adds up."""

from __future__ import annotations

from support.covered_rooms import Room, rooms_of, table


def report(statements: int, missing: int) -> dict[str, dict[str, int]]:
    return {"summary": {"num_statements": statements, "missing_lines": missing}}


def test_files_add_up_to_inner_rooms_rooms_and_the_house() -> None:
    rooms = rooms_of(
        {
            "src/cargobike/trial.py": report(10, 0),
            "src/cargobike/store/journal/journal.py": report(40, 10),
            "src/cargobike/store/journal/fold.py": report(60, 0),
            "src/cargobike/store/__init__.py": report(0, 0),
        }
    )
    assert rooms == [
        Room("(doors)", 10, 0),
        Room("store", 100, 10),
        Room("store/journal", 100, 10),
        Room("all", 110, 10),
    ]
    assert [room.share for room in rooms] == [1.0, 0.9, 0.9, 100 / 110]


def test_a_room_without_statements_is_covered() -> None:
    assert Room("core", 0, 0).share == 1.0


def test_the_table_shows_what_is_left() -> None:
    lines = table([Room("store", 100, 10), Room("store/journal", 100, 10)]).splitlines()
    assert lines[0].split() == ["store", "90.0%", "10", "of", "100", "lines", "not", "run"]
    assert lines[1].startswith("  store/journal")
    assert lines[0].index("%") == lines[1].index("%")
