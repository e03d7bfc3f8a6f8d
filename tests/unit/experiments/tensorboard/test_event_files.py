"""Event files are what TensorBoard's own reader understands."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.layout import ProjectFolder
from cargobike.core.records import TrialState
from cargobike.experiments.tensorboard import curves_view
from cargobike.experiments.tensorboard.curves_view import CurvesView, gather, write_curves
from cargobike.experiments.tensorboard.event_files import crc32c, file_start, scalars, session_end, session_start
from cargobike.testing.stores import JournalBuilder

event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
plugin_data_pb2 = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")


def read_events(data: bytes) -> list[Any]:
    """Take records apart, checking both checksums, and let TensorBoard's own messages parse them."""
    found = []
    while data:
        size, head = struct.unpack("<QI", data[:12])
        body, (tail,) = data[12 : 12 + size], struct.unpack("<I", data[12 + size : 16 + size])
        assert (head, tail) == (masked(data[:8]), masked(body))
        found.append(event_pb2.Event.FromString(body))
        data = data[16 + size :]
    return found


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_the_checksum_is_castagnolis(data: bytes, crc: int) -> None:
    assert crc32c(data) == crc  # the vectors of RFC 3720


def test_scalars_keep_tag_value_step_and_time() -> None:
    start, event, negative = read_events(
        file_start(5.0) + scalars({"acc": 0.5, "ä/loss": math.nan, "big": 1e300}, 7, 12.5) + scalars({"a": 1}, -3, 1.0)
    )
    assert (start.file_version, start.wall_time) == ("brain.Event:2", 5.0)
    assert (event.step, event.wall_time, negative.step) == (7, 12.5, -3)
    values = {value.tag: value.simple_value for value in event.summary.value}
    assert values["acc"] == 0.5
    assert math.isnan(values["ä/loss"])
    assert values["big"] == math.inf


def test_hyperparameters_keep_their_types() -> None:
    given = {"lr": 0.1, "layers": 300, "act": "relu", "bias": True, "sizes": [1, 2], "huge": 10**400, "none": None}
    start, end = read_events(session_start(given, "0003", 1.5) + session_end("failed", 2.5))
    content = start.summary.value[0].metadata.plugin_data
    assert content.plugin_name == "hparams"
    info = plugin_data_pb2.HParamsPluginData.FromString(content.content).session_start_info
    kinds = {name: value.WhichOneof("kind") for name, value in info.hparams.items()}
    assert kinds == {
        "lr": "number_value",
        "layers": "number_value",
        "act": "string_value",
        "bias": "bool_value",
        **dict.fromkeys(("sizes", "huge", "none"), "string_value"),
    }
    assert (info.hparams["layers"].number_value, info.hparams["bias"].bool_value) == (300, True)
    assert (info.group_name, info.start_time_secs) == ("0003", 1.5)
    ended = plugin_data_pb2.HParamsPluginData.FromString(end.summary.value[0].metadata.plugin_data.content)
    assert (ended.session_end_info.status, ended.session_end_info.end_time_secs) == (2, 2.5)


def tags_of(place: Path) -> list[tuple[str, int]]:
    (file,) = place.glob("events.out.tfevents*")
    return [(value.tag, event.step) for event in read_events(file.read_bytes()) for value in event.summary.value]


def test_a_view_written_in_pieces_is_the_same_as_one_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = ProjectFolder(tmp_path)
    journal = JournalBuilder(project, "20270101-000000-aaaa", metric="score")
    view = CurvesView(journal.folder)
    assert view.open()
    number = journal.start(lr=0.1)
    view.update()
    for step in range(3):
        journal.report(number, step, score=step / 2)
        view.update()
    journal.folder.trial(number).logs.mkdir(parents=True)
    journal.finish(number, 0.9)
    failed = journal.start(lr=0.2)
    journal.finish(failed, state=TrialState.FAILED, error="no")
    journal.end()
    assert not CurvesView(journal.folder).open(), "one writes, the others look"
    view.update()
    view.close()
    pieces = {place.name: tags_of(place) for place in view.root.glob("0*")}
    assert pieces["0000"][1:-2] == [("score", 0), ("score", 1), ("score", 2)]
    assert pieces["0000"][-2:] == [("final/score", 2), ("_hparams_/session_end_info", 0)]
    assert (view.root / "0000" / "own").resolve() == journal.folder.trial(number).logs.resolve()

    again = CurvesView(journal.folder)
    assert again.open()
    monkeypatch.setattr(again, "_write", lambda _: pytest.fail("nothing has changed"))
    assert not again.update()
    again.close()

    (view.root / ".journal-bytes").unlink()
    monkeypatch.setattr(curves_view, "BYTES_AT_ONCE", 100)
    write_curves(journal.folder)
    assert {place.name: tags_of(place) for place in view.root.glob("0*")} == pieces


def test_several_experiments_stand_side_by_side(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    folders = []
    for end in ("aaaa", "bbbb"):
        journal = JournalBuilder(project, f"20270101-000000-{end}", name="../di gits")
        journal.complete(0.5, lr=0.1)
        journal.end()
        write_curves(journal.folder)
        folders.append((".. /di/gits", journal.folder))
    root = gather(project.tensorboard, folders)
    assert sorted(entry.name for entry in root.iterdir()) == ["____di_gits-aaaa", "____di_gits-bbbb"]
    gather(project.tensorboard, folders[1:])
    assert [entry.name for entry in root.iterdir()] == ["____di_gits-bbbb"]
    assert (root / "____di_gits-bbbb" / "0000").is_dir()
