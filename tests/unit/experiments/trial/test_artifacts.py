"""What a trial keeps to be looked at: texts, pictures, figures, tables."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.experiments.results.artifacts import Artifacts
from cargobike.experiments.trial.artifacts import keep_artifact

TABLE = [{"a": 1, "b": 'x, "y"'}, {"a": 2, "c": "<b>"}]


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_a_text_is_kept(tmp_path: Path) -> None:
    path = keep_artifact(None, tmp_path, "samples/first", "hello\nworld")
    assert (path, path.read_text()) == (tmp_path / "samples" / "first.txt", "hello\nworld")
    assert keep_artifact(None, tmp_path, "notes.md", "# x").name == "notes.md"


def test_tables_of_every_kind_become_csv(tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow as pa

    expected = [{"a": "1", "b": 'x, "y"', "c": ""}, {"a": "2", "b": "", "c": "<b>"}]
    assert rows_of(keep_artifact(TABLE, tmp_path, "words")) == expected
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    assert rows_of(keep_artifact(frame, tmp_path, None)) == [{"a": "1", "b": "x"}, {"a": "2", "b": "y"}]
    arrow = pa.table({"a": [1, 2], "b": ["x", "y"]})
    path = keep_artifact(arrow, tmp_path, None)
    assert (path.name, rows_of(path)) == ("table-2.csv", rows_of(tmp_path / "table.csv"))


@pytest.mark.parametrize(
    ("array", "mode", "size"),
    [
        (np.zeros((4, 6), dtype=np.uint8), "L", (6, 4)),
        (np.full((4, 6, 3), 0.5), "RGB", (6, 4)),
        (np.ones((3, 4, 6), dtype=np.float32), "RGB", (6, 4)),
        (np.full((4, 6, 4), 300), "RGBA", (6, 4)),
        (np.eye(5, dtype=bool), "L", (5, 5)),
    ],
)
def test_arrays_of_pixels_become_png(tmp_path: Path, array: Any, mode: str, size: tuple[int, int]) -> None:
    from PIL import Image

    with Image.open(keep_artifact(array, tmp_path, None)) as image:
        image.load()
        assert (image.format, image.mode, image.size) == ("PNG", mode, size)


def test_pixels_keep_their_values(tmp_path: Path) -> None:
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, size=(7, 5, 3), dtype=np.uint8)
    with Image.open(keep_artifact(pixels, tmp_path, "noise")) as image:
        assert np.array_equal(np.asarray(image), pixels)
    with Image.open(keep_artifact(np.array([[-1.0, 0.0, 0.5, 1.0, 2.0]]), tmp_path, "floats")) as image:
        assert np.asarray(image).tolist() == [[0, 0, 128, 255, 255]]


def test_tensors_pictures_and_figures_become_pictures(tmp_path: Path) -> None:
    import torch
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure()
    figure.subplots().plot([1, 2, 3])
    for thing, name, kind in [
        (torch.rand(3, 4, 4, requires_grad=True), "tensor", "PNG"),
        (Image.new("RGBA", (3, 3)), None, "PNG"),
        (Image.new("RGBA", (3, 3)), "photo.jpg", "JPEG"),
        (figure, None, "PNG"),
    ]:
        with Image.open(keep_artifact(thing, tmp_path, name)) as image:
            assert image.format == kind
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.png", "image.png", "photo.jpg", "tensor.png"]


def test_a_dict_becomes_json(tmp_path: Path) -> None:
    assert keep_artifact({"best": [1, 2]}, tmp_path, None).read_text() == '{\n  "best": [\n    1,\n    2\n  ]\n}'


@pytest.mark.parametrize("thing", [object(), 3, np.zeros(5), np.zeros((2, 3, 5, 7)), [1, 2], [], np.array([["a"]])])
def test_what_cannot_be_shown_is_refused(tmp_path: Path, thing: object) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot be kept as an artifact. Allowed are a path, text=…"):
        keep_artifact(thing, tmp_path, None)


def test_names_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"kept as .csv; call it x.csv"):
        keep_artifact(TABLE, tmp_path, "x.png")
    with pytest.raises(InvalidInputError, match="relative path"):
        keep_artifact(TABLE, tmp_path, "../x.csv")
    with pytest.raises(InvalidInputError, match="Give either something to keep, or text="):
        keep_artifact(None, tmp_path, "x")
    with pytest.raises(InvalidInputError, match="To keep a text, give text="):
        keep_artifact("no such file", tmp_path, "x.txt")


HOSTILE = "<script>alert(1)</script>"


@pytest.mark.parametrize("name", ["n" * 300, "/".join(["folder"] * 1000), "é" * 200])
def test_names_that_are_too_long_for_the_file_system_are_refused_in_words(tmp_path: Path, name: str) -> None:
    source = tmp_path / "source.txt"
    source.write_text("x")
    for thing, text in ((None, "x"), (source, None), (np.zeros((2, 2), dtype=np.uint8), None)):
        with pytest.raises(InvalidInputError, match=r"bytes\) is too long for the file system .* shorter name="):
            keep_artifact(thing, tmp_path / "files", name, text)
    with pytest.raises(InvalidInputError, match="too long"):
        keep_artifact(name, tmp_path / "files", None)


def test_a_notebook_shows_files_and_runs_nothing_in_them(tmp_path: Path) -> None:
    keep_artifact(None, tmp_path, "a.txt", HOSTILE)
    keep_artifact([{HOSTILE: HOSTILE}], tmp_path, "b.csv")
    keep_artifact(np.zeros((2, 2)), tmp_path, "c.png")
    (tmp_path / "d<script>.html").write_text(HOSTILE)
    (tmp_path / "fake.png").write_text(HOSTILE)
    shown = Artifacts(tmp_path)._repr_html_()
    assert "<script" not in shown
    assert shown.count("<img") == 1
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in shown
    assert [path.name for path in Artifacts(tmp_path)] == ["a.txt", "b.csv", "c.png", "d<script>.html", "fake.png"]


def test_a_notebook_shows_a_bounded_number_of_files(tmp_path: Path) -> None:
    for number in range(30):
        keep_artifact(None, tmp_path, f"{number:02d}.txt", "x" * 100_000)
    shown = Artifacts(tmp_path)._repr_html_()
    assert "6 more" in shown
    assert len(shown) < 24 * 21_000
