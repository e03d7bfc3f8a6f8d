"""Rows in files are joined as rows in memory are, wherever the files lie and whatever columns they have."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from cargobike import features, project
from cargobike.features.queries.asking import ask
from support.memory_groups import memory_group


@pytest.mark.parametrize("folder", ["plain", "it's", "key=7", "with [brackets]*"])
def test_files_give_what_memory_gives(tmp_path: Path, folder: str) -> None:
    draw = random.Random(5)
    places = draw.sample([(key, at) for key in range(6) for at in range(100, 160)], 200)
    rows = [(key, at, draw.choice([None, draw.random()])) for key, at in places]
    project.use(tmp_path / folder)
    try:
        group = features.create_group("history", key="key", event_time="at", ttl=20)
        for start in range(0, 200, 50):  # one file each, in the order of time, so that some are out of reach
            some = sorted(rows, key=lambda row: row[1])[start : start + 50]
            columns: dict[str, Any] = {"key": [row[0] for row in some], "x": [row[2] for row in some]}
            group.insert({**columns, "at": [moment(row[1]) for row in some]})
        group.insert({"key": [0], "at": [moment(161)], "x": [0.5], "late": ["yes"]}, new_columns="add")
        columns = {"key": [row[0] for row in rows] + [0], "x": [row[2] for row in rows] + [0.5]}
        times: list[int | None] = [row[1] for row in rows]
        late: list[Any] = [None] * 200 + ["yes"]
        same = memory_group("history", "key", {**columns, "late": late}, at=[*times, 161], ttl_s=20)
        for first, last in ((90, 99), (100, 115), (120, 200), (300, 310)):
            labels = {
                "key": [draw.randrange(7) for _ in range(30)],
                "at": [moment(draw.randint(first, last)) for _ in range(30)],
            }
            expected = ask(["x", "late"], [same], labels).to_arrow()
            assert features.get_features(["x", "late"], labels=labels).to_arrow().equals(expected)
        assert features.get_features(["x"]).to_arrow().num_rows == 201
    finally:
        project.use(None)


def moment(second: int) -> str:
    return f"1970-01-01 00:{second // 60:02d}:{second % 60:02d}"
