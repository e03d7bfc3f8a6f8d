"""A trial's place in its data: kept with each checkpoint, brought back by the first load, agreed on by ranks."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.feeding import Consumed, Follower, Placed
from cargobike.experiments.trial import fed as module
from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints
from cargobike.experiments.trial.context import Context
from cargobike.experiments.trial.fed import Fed


class Rows:
    """Ten rows, drawn one by one."""

    def __init__(self) -> None:
        self.position = 0
        self.follower: Follower | None = None

    def draw(self, count: int) -> list[int]:
        assert self.follower is not None
        self.follower.begins()
        begin = self.position
        for _ in range(count):
            self.position += 1
            self.follower.drew()
        return list(range(begin, self.position))

    def state_dict(self) -> dict[str, Any]:
        return {"position": self.position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.position = state["position"]

    def follow(self, follower: Follower) -> None:
        self.follower = follower

    def consumed(self) -> Consumed:
        return Consumed(self.position, 0.25)


class Exchange:
    """A gang in threads: each member sees what all have published."""

    def __init__(self, size: int) -> None:
        self._barrier = threading.Barrier(size, timeout=20)
        self._values: list[bytes] = [b""] * size

    def of(self, rank: int) -> Any:
        here = self

        class Member:
            def exchange(self, name: str, value: bytes, *, of: str) -> list[bytes]:
                here._values[rank] = value
                here._barrier.wait()
                return list(here._values)

        return Member()


def _trial(folder: Path) -> tuple[Context, Rows]:
    here, rows = Context(), Rows()
    here._folder = folder
    here.feed(rows)
    return here, rows


def test_a_checkpoint_holds_the_place_and_the_first_load_brings_it_back(tmp_path: Path) -> None:
    here, rows = _trial(tmp_path)
    assert here.checkpoint.load() is None
    rows.draw(3)
    saved = here.checkpoint.save({"weights": 1})
    rows.draw(2)
    assert json.loads((saved.path / "meta.json").read_text())["place"] == {"position": 3}
    again, rows = _trial(tmp_path)
    assert again.checkpoint.load() == {"weights": 1}
    assert rows.draw(2) == [3, 4]
    again.checkpoint.load(best=True)
    assert rows.position == 5, "a later look at a checkpoint does not move the data"


def test_a_function_that_loads_nothing_begins_with_the_first_row(tmp_path: Path) -> None:
    here, rows = _trial(tmp_path)
    rows.draw(3)
    here.checkpoint.save(1)
    again, rows = _trial(tmp_path)
    assert again.checkpoint.exists
    assert again.checkpoint.step == 0
    assert rows.draw(1) == [0]


def test_a_damaged_checkpoint_does_not_bring_its_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    here, rows = _trial(tmp_path)
    here.checkpoint.keep(last=2)
    for _ in range(2):
        rows.draw(2)
        newest = here.checkpoint.save(b"state")
    (newest.path / "state.bin").write_bytes(b"other")
    again, rows = _trial(tmp_path)
    assert again.checkpoint.load() == b"state"
    assert rows.position == 2
    assert "is damaged" in caplog.text


def test_checkpoints_without_a_place_and_trials_without_data_are_as_before(tmp_path: Path) -> None:
    Checkpoints(tmp_path / "checkpoints").save("old")
    assert '"place": null' in next((tmp_path / "checkpoints").glob("*/meta.json")).read_text()
    here, rows = _trial(tmp_path)
    assert here.checkpoint.load() == "old"
    assert rows.position == 0
    plain = Context()
    plain.feed([1, 2, 3])
    plain.checkpoint.save(1)
    assert plain.checkpoint.load() == 1


def test_a_trial_that_begins_with_another_ones_checkpoint_begins_with_its_place(tmp_path: Path) -> None:
    here, rows = _trial(tmp_path / "first")
    rows.draw(4)
    here.checkpoint.save("weights")
    copy, rows = _trial(tmp_path / "second")
    copy._start_from = str(here.checkpoints_root)
    assert copy.checkpoint.load() == "weights"
    assert rows.draw(1) == [4]


@pytest.mark.parametrize(("loaded", "begins"), [((0, 1, 2), 7), ((0,), 7), ((2,), 7), ((), 0)])
def test_ranks_begin_at_the_same_place_whoever_has_loaded(loaded: tuple[int, ...], begins: int) -> None:
    gang = Exchange(3)
    rows = [Rows() for _ in range(3)]
    trials = [Fed(each, lambda *_: None, gang.of(rank)) for rank, each in enumerate(rows)]
    for rank in loaded:
        trials[rank].go_on({"position": 7})
    drawn: dict[int, list[int]] = {}
    threads = [threading.Thread(target=lambda rank=rank: drawn.update({rank: rows[rank].draw(2)})) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert drawn == {rank: [begins, begins + 1] for rank in range(3)}
    assert rows[0].draw(1) == [begins + 2], "they ask once"


def test_ranks_that_have_loaded_different_places_are_refused() -> None:
    gang = Exchange(2)
    rows = [Rows(), Rows()]
    trials = [Fed(each, lambda *_: None, gang.of(rank)) for rank, each in enumerate(rows)]
    trials[0].go_on({"position": 1})
    trials[1].go_on({"position": 2})
    refusals: list[str] = []

    def draw(rank: int) -> None:
        with pytest.raises(InvalidInputError, match=r"2 different places in the data\. Load the same one") as refused:
            rows[rank].draw(1)
        refusals.append(str(refused.value))

    other = threading.Thread(target=draw, args=(1,))
    other.start()
    draw(0)
    other.join(timeout=20)
    assert len(refusals) == 2


def test_the_driver_hears_now_and_then_what_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TELL_EVERY_S", 3600.0)
    heard: list[tuple[int, float]] = []
    rows = Rows()
    assert isinstance(rows, Placed)
    Fed(rows, lambda count, waited_s: heard.append((count, waited_s)))
    rows.draw(5)
    assert heard == [(1, 0.25)]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_sharded_checkpoints_hold_the_place_too(tmp_path: Path) -> None:
    here, rows = _trial(tmp_path)
    rows.draw(2)
    here.checkpoint.save_sharded({"weights": torch.ones(2)})
    rows.draw(4)
    state = {"weights": torch.zeros(2)}
    again, rows = _trial(tmp_path)
    assert again.checkpoint.load_sharded(state) == 0
    assert (state["weights"].tolist(), rows.position) == ([1.0, 1.0], 2)
    again.checkpoint.save("something else")
    third, rows = _trial(tmp_path)
    assert third.checkpoint.load_sharded(state) is None
    assert rows.position == 0, "what is no sharded checkpoint was not loaded"
