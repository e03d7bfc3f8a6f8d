from __future__ import annotations

import errno
import json
import logging
import math
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints
from cargobike.experiments.trial.checkpoints.files import SavedCheckpoint, StoredState
from cargobike.experiments.trial.checkpoints.folder import list_folders
from cargobike.experiments.trial.checkpoints.forcing import Forcing
from cargobike.experiments.trial.checkpoints.surroundings import Remembering
from cargobike.experiments.trial.sent_reports import KeptReport, Reports

CHILD_ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "not" / "there" / "yet"


def visible(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def only_file(saved: SavedCheckpoint) -> Path:
    (path,) = (path for path in saved.path.iterdir() if path.name != "meta.json")
    return path


def damage(saved: SavedCheckpoint) -> None:
    """Flip one bit, which leaves the size as it was."""
    path = only_file(saved)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


class TestStates:
    @pytest.mark.parametrize(
        "state",
        [
            b"",
            b"\x00\xff" * 1000,
            None,
            3,
            "text",
            {"epoch": 3, "weights": [1.0, math.inf]},
            (1, {2}),
            bytearray(b"x"),
        ],
        ids=repr,
    )
    def test_plain_objects_come_back_as_they_were(self, root: Path, state: object) -> None:
        Checkpoints(root).save(state)
        loaded = Checkpoints(root).load(default="nothing")
        assert loaded == state
        assert type(loaded) is type(state)

    def test_arrays_come_back(self, root: Path) -> None:
        state: dict[str, Any] = {"w": np.arange(100_000, dtype=np.float32), "rng": np.random.default_rng(3)}
        saved = Checkpoints(root).save(state)
        loaded = Checkpoints(root).load()
        assert np.array_equal(loaded["w"], state["w"])
        assert loaded["rng"].random() == np.random.default_rng(3).random()
        assert saved.size_bytes > 400_000

    @given(st.recursive(st.none() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(), st.lists))
    @settings(max_examples=25, deadline=None)
    def test_any_data_comes_back(self, tmp_path_factory: pytest.TempPathFactory, state: object) -> None:
        root = tmp_path_factory.mktemp("any")
        Checkpoints(root).save(state)
        assert Checkpoints(root).load() == state

    def test_torch_state_is_stored_by_torch(self, root: Path) -> None:
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        saved = Checkpoints(root).save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 4})
        assert only_file(saved).name == "state.pt"
        loaded = Checkpoints(root).load()
        assert loaded["epoch"] == 4
        assert torch.equal(loaded["model"]["weight"], model.weight)
        torch.optim.Adam(torch.nn.Linear(3, 2).parameters()).load_state_dict(loaded["optimizer"])

    def test_a_tensor_deep_inside_an_object_is_found(self, root: Path) -> None:
        saved = Checkpoints(root).save({"history": [Holder(torch.arange(3))], "big": list(range(1000))})
        assert only_file(saved).name == "state.pt"
        assert torch.equal(Checkpoints(root).load()["history"][0].content, torch.arange(3))

    def test_a_whole_module_comes_back_though_it_is_more_than_weights(self, root: Path) -> None:
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        Checkpoints(root).save(model)
        loaded = Checkpoints(root).load()
        assert torch.equal(loaded(torch.ones(2)), model(torch.ones(2)))

    def test_tensors_of_an_absent_device_come_back_on_the_cpu(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if torch.cuda.is_available():
            pytest.skip("the device is not absent here")
        with monkeypatch.context() as patch:
            patch.setattr("torch.serialization.location_tag", lambda storage: "cuda:1")
            Checkpoints(root).save({"w": torch.ones(2)})
        loaded = Checkpoints(root).load()
        assert loaded["w"].device.type == "cpu"
        assert torch.equal(loaded["w"], torch.ones(2))

    def test_without_tensors_loading_needs_no_torch(self, root: Path) -> None:
        Checkpoints(root).save({"epoch": 1})
        program = (
            "import sys; from pathlib import Path;"
            "from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints;"
            f"print(Checkpoints(Path({str(root)!r})).load()); assert 'torch' not in sys.modules"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], env=CHILD_ENV, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "{'epoch': 1}"

    @pytest.mark.parametrize("tensor", [None, torch.ones(1)], ids=["plain", "torch"])
    def test_what_lives_only_in_this_function_is_saved_by_value(self, root: Path, tensor: object) -> None:
        class Local:
            value = 7

        Checkpoints(root).save({"local": Local(), "double": lambda x: 2 * x, "tensor": tensor})
        loaded = Checkpoints(root).load()
        assert loaded["local"].value == 7
        assert loaded["double"](4) == 8

    def test_a_file_is_copied(self, root: Path, tmp_path: Path) -> None:
        original = tmp_path / "model weights.bin"
        original.write_bytes(b"123")
        saved = Checkpoints(root).save(original)
        original.write_bytes(b"changed later")
        loaded = Checkpoints(root).load()
        assert isinstance(loaded, Path)
        assert loaded.name == "model weights.bin"
        assert loaded.read_bytes() == b"123"
        assert saved.size_bytes == 3

    def test_a_folder_is_copied_with_its_links(self, root: Path, tmp_path: Path) -> None:
        folder = tmp_path / "model"
        (folder / "empty").mkdir(parents=True)
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "deep" / "er" / "w.bin").write_bytes(b"w")
        (folder / "relative").symlink_to("deep/er/w.bin")
        (folder / "absolute").symlink_to(folder / "deep" / "er" / "w.bin")
        (folder / "deep" / "loop").symlink_to(folder)
        Checkpoints(root).save(folder)
        loaded = Checkpoints(root).load()
        assert loaded.name == "model"
        assert sorted(path.name for path in loaded.iterdir()) == ["absolute", "deep", "empty", "relative"]
        stored = (loaded / "deep" / "er" / "w.bin").resolve()
        assert stored.is_relative_to(root.resolve())
        assert (loaded / "relative").resolve() == (loaded / "absolute").resolve() == stored
        assert (loaded / "deep" / "loop").resolve() == loaded.resolve()

    @pytest.mark.parametrize("spelling", [".", "sub/.."])
    def test_a_folder_has_its_real_name(
        self, root: Path, tmp_path: Path, spelling: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "work" / "sub").mkdir(parents=True)
        (tmp_path / "work" / "a").write_text("a")
        monkeypatch.chdir(tmp_path / "work")
        Checkpoints(root).save(Path(spelling))
        assert (Checkpoints(root).load() / "a").read_text() == "a"
        assert Checkpoints(root).load().name == "work"

    def test_a_text_that_names_a_file_is_probably_a_mistake(
        self, root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "model.pt").touch()
        Checkpoints(root).save(str(tmp_path / "model.pt"))
        assert "pass Path(" in caplog.text
        caplog.clear()
        Checkpoints(root).save("just a text")
        assert not caplog.text


class Holder:
    def __init__(self, content: object) -> None:
        self.content = content


class LeavesLockOut(Holder):
    def __init__(self, content: object) -> None:
        super().__init__(content)
        self.lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        return {"content": self.content}


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner: object) -> None:
        self.inner = inner


class TestRefusals:
    def test_the_culprit_inside_a_state_is_named(self, root: Path) -> None:
        state = {
            "epoch": 1,
            "loader": Holder([0, threading.Lock()]),
            "fine": LeavesLockOut(1),
            "partly": LeavesLockOut(i for i in range(3)),
            "slotted": Slotted(socket.socketpair),
        }
        with pytest.raises(InvalidInputError, match="cannot be saved as a checkpoint: TypeError") as caught:
            Checkpoints(root).save(state)
        assert caught.value.mistakes == (
            "state['loader'].content[1] is a _thread.lock",
            "state['partly'].content is a generator",
        )
        assert visible(root) == []

    def test_the_culprit_beside_tensors_is_named(self, root: Path) -> None:
        with pytest.raises(InvalidInputError) as caught:
            Checkpoints(root).save([torch.ones(1), Slotted(threading.Lock())])
        assert caught.value.mistakes == ("state[1].inner is a _thread.lock",)

    def test_an_object_that_refuses_by_itself_is_named(self, root: Path) -> None:
        class Stubborn:
            def __reduce__(self) -> str:
                raise ValueError("not me")

        with pytest.raises(InvalidInputError, match="ValueError: not me") as caught:
            Checkpoints(root).save({"a": {"b": Stubborn()}})
        assert "state['a']['b'] is a" in caught.value.mistakes[0]

    def test_many_culprits_are_counted(self, root: Path) -> None:
        with pytest.raises(InvalidInputError) as caught:
            Checkpoints(root).save([threading.Lock() for _ in range(8)])
        assert caught.value.mistakes[-1] == "and 3 more"

    def test_a_cycle_does_not_trap_the_search(self, root: Path) -> None:
        state: dict[str, Any] = {"lock": threading.Lock()}
        state["self"] = state
        with pytest.raises(InvalidInputError) as caught:
            Checkpoints(root).save(state)
        assert caught.value.mistakes == ("state['lock'] is a _thread.lock",)

    def test_an_endlessly_nested_state_is_refused(self, root: Path) -> None:
        state: list[Any] = []
        for _ in range(100_000):
            state = [state]
        with pytest.raises(InvalidInputError, match="excessively deep recursion"):
            Checkpoints(root).save(state)

    def test_a_path_must_exist(self, root: Path, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match="not an existing file or folder"):
            Checkpoints(root).save(tmp_path / "missing")
        with pytest.raises(InvalidInputError, match="not an existing file or folder"):
            Checkpoints(root).save(Path("/dev/null"))

    def test_everything_wrong_with_a_folder_is_said_at_once(self, root: Path, tmp_path: Path) -> None:
        folder = tmp_path / "model"
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "escape").symlink_to("../../secret")
        (folder / "passwd").symlink_to("/etc/passwd")
        (folder / "outer").symlink_to(tmp_path)
        os.mkfifo(folder / "pipe")
        os.close(os.open(os.fsencode(folder) + b"/bad\xff", os.O_CREAT))
        with pytest.raises(InvalidInputError) as caught:
            Checkpoints(root).save(folder)
        message = str(caught.value)
        assert len(caught.value.mistakes) == 5
        assert "'passwd' is a link to /etc/passwd, outside of the folder" in message
        assert "'sub/escape' is a link to" in message
        assert "'outer' is a link to" in message
        assert "'pipe' is neither a file nor a folder" in message
        assert "not valid UTF-8" in message
        assert visible(root) == []

    def test_a_folder_may_not_contain_the_checkpoints(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match="where checkpoints are kept"):
            Checkpoints(tmp_path / "trial" / "checkpoints").save(tmp_path / "trial")

    def test_numbers_are_checked(self, root: Path) -> None:
        with pytest.raises(InvalidInputError, match=r"(?s)last=0.*best=-1"):
            Checkpoints(root, keep_last=0, keep_best=-1)
        with pytest.raises(InvalidInputError, match=r"step must be a whole number, got 1\.5"):
            Checkpoints(root).save(1, step=1.5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="metric must be a number, got str"):
            Checkpoints(root).save(1, metric="high")  # type: ignore[arg-type]

    def test_a_full_disk_leaves_earlier_checkpoints_alone(self, root: Path) -> None:
        Checkpoints(root).save("earlier", step=1)
        program = f"""
import resource, signal, sys
from pathlib import Path
from cargobike.core.errors import StoreError
from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints
state = b"x" * 500_000
if sys.argv[1] == "pickle":
    state = [state]
if sys.argv[1] == "torch":
    import torch
    state = torch.ones(500_000)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    Checkpoints(Path({str(root)!r})).save(state, step=2)
except StoreError as error:
    print(error)
"""
        for kind in ("bytes", "pickle", "torch"):
            done = subprocess.run(
                [sys.executable, "-c", program, kind],
                env=CHILD_ENV,
                capture_output=True,
                text=True,
                check=True,
            )
            assert "checkpoint of step 2 could not be saved" in done.stdout, kind
            assert "File too large" in done.stdout, kind
            assert visible(root) == ["000001-step1"]
        assert Checkpoints(root).load() == "earlier"

    def test_an_intact_state_whose_class_is_gone_is_not_skipped_silently(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checkpoints = Checkpoints(root, keep_last=2)
        checkpoints.save("earlier")
        checkpoints.save(Holder(1))
        monkeypatch.delattr(sys.modules[__name__], "Holder")
        with pytest.raises(StoreError, match="is intact, but its state could not be rebuilt: AttributeError"):
            Checkpoints(root).load()


class TestOrder:
    def test_nothing_is_created_before_the_first_save(self, root: Path) -> None:
        checkpoints = Checkpoints(root)
        assert checkpoints.load("default") == "default"
        assert (checkpoints.exists, checkpoints.step, checkpoints.path, checkpoints.all()) == (
            False,
            None,
            None,
            [],
        )
        assert not root.exists()

    def test_the_newest_is_the_one_saved_last_whatever_its_step(self, root: Path) -> None:
        checkpoints = Checkpoints(root, keep_last=3)
        for step in (9, 100, 10):
            checkpoints.save(f"at {step}", step=step)
        for seen in (checkpoints, Checkpoints(root)):
            assert seen.load() == "at 10"
            assert seen.step == 10
            assert [saved.step for saved in seen.all()] == [9, 100, 10]
            assert seen.path == seen.all()[-1].path

    def test_the_same_step_can_be_saved_again(self, root: Path) -> None:
        checkpoints = Checkpoints(root)
        checkpoints.save("first", step=5)
        checkpoints.save("second", step=5)
        assert Checkpoints(root).load() == "second"
        assert len(visible(root)) == 1

    def test_steps_count_up_by_themselves(self, root: Path) -> None:
        assert [Checkpoints(root).save("x").step for _ in range(3)] == [0, 1, 2]
        assert Checkpoints(root).save("x", step=np.int64(10)).step == 10  # type: ignore[arg-type]
        assert Checkpoints(root).save("x").step == 11

    def test_the_step_of_the_last_report_is_used(self, root: Path) -> None:
        reported: list[int | None] = [None]
        checkpoints = Checkpoints(root, current_step=lambda: reported[0])
        assert checkpoints.save("x").step == 0
        reported[0] = 40
        assert checkpoints.save("x").step == 40
        assert checkpoints.save("x", step=7).step == 7

    def test_saved_checkpoints_are_announced_when_they_are_safe_and_before_others_go(self, root: Path) -> None:
        announced: list[tuple[SavedCheckpoint, object, int]] = []

        def on_saved(saved: SavedCheckpoint) -> None:
            announced.append((saved, Checkpoints(root).load(), len(visible(root))))

        checkpoints = Checkpoints(root, on_saved=on_saved)
        first = checkpoints.save("one", step=1, metric=0.5)
        second = checkpoints.save("two", step=2)
        assert announced == [(first, "one", 1), (second, "two", 2)]
        assert (first.step, first.metric, second.metric) == (1, 0.5, None)
        assert first.path.is_absolute()

    def test_a_change_of_directory_does_not_matter(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        checkpoints = Checkpoints(Path("here"))
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        checkpoints.save("x")
        assert (tmp_path / "here").is_dir()

    def test_threads_may_save_at_the_same_time(self, root: Path) -> None:
        checkpoints = Checkpoints(root, keep_last=100)
        threads = [threading.Thread(target=checkpoints.save, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [saved.step for saved in Checkpoints(root).all()] == list(range(8))

    def test_two_writers_never_overwrite_each_other(self, root: Path) -> None:
        left, right = Checkpoints(root, keep_last=10), Checkpoints(root, keep_last=10)
        for index in range(3):
            left.save(f"left {index}", step=index)
            right.save(f"right {index}", step=index)
        assert len(Checkpoints(root).all()) == 6
        assert left.load() == right.load() == "right 2"


class TestRetention:
    def kept(self, root: Path) -> list[int]:
        return [saved.step for saved in Checkpoints(root).all()]

    def test_one_is_kept_by_default(self, root: Path) -> None:
        checkpoints = Checkpoints(root)
        for step in range(4):
            checkpoints.save(step, step=step)
        assert visible(root) == ["000004-step3"]

    @pytest.mark.parametrize(
        ("direction", "expected"), [("max", [1, 4, 5, 6]), ("min", [2, 3, 5, 6])], ids=["max", "min"]
    )
    def test_the_last_and_the_best_are_kept(self, root: Path, direction: Any, expected: list[int]) -> None:
        checkpoints = Checkpoints(root, keep_last=2, keep_best=2, direction=direction)
        for step, metric in enumerate(
            [0.5, 0.9, 0.1, 0.2, 0.8, math.nan, math.inf if direction == "max" else -math.inf]
        ):
            checkpoints.save(step, step=step, metric=metric)
        assert self.kept(root) == expected

    def test_the_best_can_be_loaded(self, root: Path) -> None:
        checkpoints = Checkpoints(root, keep_best=1)
        for step, metric in enumerate([0.5, 0.9, 0.1]):
            checkpoints.save(f"state {step}", step=step, metric=metric)
        assert Checkpoints(root).load(best=True) == "state 1"
        assert Checkpoints(root).load() == "state 2"
        assert Checkpoints(root, direction="min").load(best=True) == "state 2"

    def test_without_metrics_the_best_is_the_newest(self, root: Path, caplog: pytest.LogCaptureFixture) -> None:
        checkpoints = Checkpoints(root, keep_best=1)
        checkpoints.save("a")
        checkpoints.save("b")
        assert checkpoints.load(best=True) == "b"
        assert caplog.text.count("without metric=") == 1

    def test_how_many_are_kept_can_be_changed(self, root: Path) -> None:
        checkpoints = Checkpoints(root)
        checkpoints.keep(last=3)
        for step in range(5):
            checkpoints.save(step, step=step)
        assert self.kept(root) == [2, 3, 4]
        checkpoints.keep(last=1)
        checkpoints.save(5, step=5)
        assert self.kept(root) == [5]

    def test_damaged_ones_do_not_count(self, root: Path) -> None:
        checkpoints = Checkpoints(root, keep_last=2)
        checkpoints.save("one", step=1)
        damage(checkpoints.save("two", step=2))
        again = Checkpoints(root, keep_last=2)
        assert again.load() == "one"
        again.save("three", step=3)
        assert self.kept(root) == [1, 3]

    @given(
        metrics=st.lists(st.none() | st.floats(width=16), min_size=1, max_size=12),
        last=st.integers(1, 3),
        best=st.integers(0, 3),
    )
    @settings(max_examples=25, deadline=None)
    def test_exactly_the_last_and_the_best_remain(
        self, tmp_path_factory: pytest.TempPathFactory, metrics: list[float | None], last: int, best: int
    ) -> None:
        root = tmp_path_factory.mktemp("kept")
        checkpoints = Checkpoints(root, keep_last=last, keep_best=best)
        for step, metric in enumerate(metrics):
            checkpoints.save(step, step=step, metric=metric)
        finite = [(-m, step) for step, m in enumerate(metrics) if m is not None and math.isfinite(m)]
        expected = {*range(len(metrics))[-last:], *(step for _, step in sorted(finite)[:best])}
        assert self.kept(root) == sorted(expected)

    def test_cleared_checkpoints_are_gone_and_a_parents_stay(self, root: Path, tmp_path: Path) -> None:
        Checkpoints(tmp_path / "parent").save("parent's", step=5)
        checkpoints = Checkpoints(root, keep_last=3, start_from=tmp_path / "parent")
        checkpoints.save("one")
        damage(checkpoints.save("two"))
        checkpoints.clear()
        assert visible(root) == []
        assert checkpoints.load() == "parent's"
        checkpoints.clear()
        assert checkpoints.save("again").step == 6


class TestDamage:
    @pytest.mark.parametrize("state", [b"some bytes", {"a": list(range(100))}, {"w": torch.ones(100)}])
    def test_a_flipped_bit_is_noticed(self, root: Path, state: object, caplog: pytest.LogCaptureFixture) -> None:
        checkpoints = Checkpoints(root, keep_last=2)
        checkpoints.save("intact", step=1)
        damage(checkpoints.save(state, step=2))
        for seen in (Checkpoints(root), checkpoints):
            caplog.clear()
            assert seen.load() == "intact"
            assert "000002-step2 is damaged (the checksum of" in caplog.text
            assert seen.step == 1
            assert [saved.step for saved in seen.all()] == [1]

    @pytest.mark.parametrize("content", [b"", b"{}", b'{"kind": 3}', b"\xff\xfe", b"null"])
    def test_a_broken_description_is_noticed(
        self, root: Path, content: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        checkpoints = Checkpoints(root, keep_last=2)
        checkpoints.save("intact", step=1)
        saved = checkpoints.save("broken", step=2)
        (saved.path / "meta.json").write_bytes(content)
        assert Checkpoints(root).step == 1
        assert Checkpoints(root).load() == "intact"
        assert "meta.json cannot be read" in caplog.text

    def test_missing_and_shortened_files_are_noticed(self, root: Path, caplog: pytest.LogCaptureFixture) -> None:
        checkpoints = Checkpoints(root, keep_last=4)
        checkpoints.save("intact", step=0)
        only_file(checkpoints.save("x" * 100, step=1)).unlink()
        shortened = only_file(checkpoints.save("x" * 100, step=2))
        shortened.write_bytes(shortened.read_bytes()[:50])
        (checkpoints.save("x", step=3).path / "meta.json").unlink()
        assert Checkpoints(root).load() == "intact"
        for reason in ("state.pkl is missing", "has 50 bytes instead of", "meta.json is missing"):
            assert reason in caplog.text

    def test_a_description_of_another_step_is_noticed(self, root: Path) -> None:
        saved = Checkpoints(root).save("x", step=1)
        text = (saved.path / "meta.json").read_text()
        (saved.path / "meta.json").write_text(text.replace('"step": 1', '"step": 7'))
        assert Checkpoints(root).load("default") == "default"

    def test_a_changed_link_in_a_folder_is_noticed(self, root: Path, tmp_path: Path) -> None:
        folder = tmp_path / "model"
        folder.mkdir()
        (folder / "a").touch()
        (folder / "link").symlink_to("a")
        Checkpoints(root).save(folder)
        link = Checkpoints(root).load() / "link"
        link.unlink()
        link.symlink_to("/etc/passwd")
        assert Checkpoints(root).load("default") == "default"

    def test_if_all_are_damaged_the_trial_starts_over(self, root: Path) -> None:
        damage(Checkpoints(root).save("x"))
        seen = Checkpoints(root)
        assert not seen.exists
        assert seen.load("default") == "default"
        assert seen.save("y", step=0).path.name == "000002-step0"
        assert visible(root) == ["000002-step0"]

    def test_each_damage_is_mentioned_once(self, root: Path, caplog: pytest.LogCaptureFixture) -> None:
        damage(Checkpoints(root).save("x"))
        seen = Checkpoints(root)
        assert not seen.exists
        seen.load()
        seen.load()
        assert caplog.text.count("is damaged") == 1

    def test_the_description_is_readable_without_us(self, root: Path) -> None:
        saved = Checkpoints(root).save({"a": 1}, step=3, metric=math.nan)
        meta = json.loads((saved.path / "meta.json").read_text())
        assert (meta["kind"], meta["step"], meta["metric"]) == ("pickle", 3, "nan")
        assert pickle.loads((saved.path / meta["entry"]).read_bytes()) == {"a": 1}
        assert math.isnan(Checkpoints(root).all()[0].metric or 0.0)


class TestStartFrom:
    def test_a_clone_starts_where_the_other_is_and_goes_its_own_way(self, root: Path, tmp_path: Path) -> None:
        parent = Checkpoints(tmp_path / "parent")
        parent.save("parent's", step=12)
        clone = Checkpoints(root, start_from=tmp_path / "parent")
        assert clone.load() == "parent's"
        assert (clone.exists, clone.step, clone.all()) == (True, 12, [])
        assert clone.save("clone's").step == 13
        assert clone.load() == "clone's"
        assert parent.load() == "parent's"

    def test_a_single_checkpoint_can_be_named(self, root: Path, tmp_path: Path) -> None:
        parent = Checkpoints(tmp_path / "parent", keep_last=2)
        first = parent.save("first", step=1)
        parent.save("second", step=2)
        assert Checkpoints(root, start_from=first.path).load() == "first"

    def test_a_parent_that_saved_nothing_gives_nothing(self, root: Path, tmp_path: Path) -> None:
        assert Checkpoints(root, start_from=tmp_path / "never").load("default") == "default"

    def test_damaged_own_checkpoints_fall_back_to_the_parent(self, root: Path, tmp_path: Path) -> None:
        Checkpoints(tmp_path / "parent").save("parent's")
        damage(Checkpoints(root).save("own"))
        assert Checkpoints(root, start_from=tmp_path / "parent").load() == "parent's"

    def test_a_parent_that_moves_on_while_we_look_is_looked_at_again(
        self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        parent = Checkpoints(tmp_path / "parent")
        parent.save("old", step=1)
        clone = Checkpoints(root, start_from=tmp_path / "parent")
        moved_on = False

        def list_then_move_on(folder: Path) -> list[Path]:
            nonlocal moved_on
            found = list_folders(folder)
            if folder == tmp_path / "parent" and not moved_on:
                moved_on = True
                parent.save("new", step=2)
            return found

        monkeypatch.setattr("cargobike.experiments.trial.checkpoints.checkpoint.list_folders", list_then_move_on)
        assert clone.load() == "new"
        assert "damaged" not in caplog.text


class TestRanks:
    def test_each_loads_what_was_there_when_all_began_however_late(self, root: Path) -> None:
        begun = Checkpoints(root).save("earlier", step=1).path.name
        first, late = (Checkpoints(root, rank=rank, began_with=begun) for rank in range(2))
        assert first.load() == "earlier"
        first.save("newer", step=2)
        assert (late.step, late.load(), late.load()) == (1, "earlier", "newer")

    def test_after_its_own_save_each_loads_what_rank_0_has_saved(self, root: Path) -> None:
        ranks = [Checkpoints(root, rank=rank, began_with="") for rank in range(2)]
        for number, rank in enumerate(ranks):
            rank.save(number, step=1)
        assert [(rank.load(), rank.step) for rank in ranks] == [(0, 1), (0, 1)]


class TestKill:
    def test_leftovers_of_killed_processes_are_cleaned_at_the_next_save(self, root: Path) -> None:
        Checkpoints(root).save("x", step=1)
        ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
        host = os.uname().nodename
        dead = root / f".saving.{int(ended.stdout)}.0.{host}"
        reused_pid = root / f".saving.{os.getpid()}.999999.{host}"
        alive = root / f".saving.{os.getppid()}.0.{host}"
        foreign = root / ".saving.1.0.elsewhere.example.org"
        foreign_old = root / ".saving.2.0.elsewhere.example.org"
        half_deleted = root / ".deleting.1.0.elsewhere"
        for leftover in (dead, reused_pid, alive, foreign, foreign_old, half_deleted):
            (leftover / "files").mkdir(parents=True)
        os.utime(foreign_old, (0, 0))
        Checkpoints(root).save("y", step=2)
        assert visible(root) == sorted([alive.name, foreign.name, "000002-step2"])

    def test_whatever_the_moment_of_death_an_intact_state_is_loaded(self, root: Path) -> None:
        """Kill the process at every single call that changes the disk, one after the other."""
        program = f"""
import os, shutil, signal, sys
from pathlib import Path
from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints
root, deadly = Path({str(root)!r}), int(sys.argv[1])
checkpoints = Checkpoints(root, keep_last=1)
before = checkpoints.load()
calls = 0
def deadly_at(original):
    def call(*args, **kwargs):
        global calls
        calls += 1
        if calls == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)
    return call
for name in ("fsync", "rename", "mkdir", "unlink", "rmdir"):
    setattr(os, name, deadly_at(getattr(os, name)))
checkpoints.save({{"number": before["number"] + 1, "ballast": "x" * 100_000}})
"""
        Checkpoints(root).save({"number": 0})
        number, died_after_commit = 0, 0
        for deadly in range(1, 100):
            code = subprocess.run([sys.executable, "-c", program, str(deadly)], env=CHILD_ENV, check=False).returncode
            seen = Checkpoints(root).load()
            assert seen["number"] in {number, number + 1}
            if code == 0:
                break
            assert code == -signal.SIGKILL
            died_after_commit += seen["number"] > number
            number = seen["number"]
        assert seen["number"] == number + 1
        assert deadly > 7, "the calls were not counted"
        assert died_after_commit > 0
        assert len(visible(root)) == 1

    def test_a_loop_of_saves_killed_in_the_middle_leaves_an_intact_state(self, root: Path) -> None:
        program = f"""
import sys
from pathlib import Path
from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints
checkpoints = Checkpoints(Path({str(root)!r}), keep_last=2)
number = (checkpoints.load() or {{"number": 0}})["number"]
while True:
    number += 1
    checkpoints.save({{"number": number, "copy": [number] * 50_000}})
    print(number, flush=True)
"""
        confirmed = 0
        for lines in (1, 2, 3, 5, 8, 13):
            with subprocess.Popen([sys.executable, "-c", program], env=CHILD_ENV, stdout=subprocess.PIPE) as child:
                assert child.stdout is not None
                for _ in range(lines):
                    confirmed = int(child.stdout.readline())
                while not any(name.startswith(".saving.") for name in os.listdir(root)):
                    pass  # the next save begins any moment
                child.kill()
            state = Checkpoints(root).load()
            assert state["number"] >= confirmed
            assert state["copy"] == [state["number"]] * 50_000


@pytest.fixture(autouse=True)
def warnings_only(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.WARNING):
        yield


class TestForcing:
    """What is on disk when the power goes: shown by what is flushed, as nobody can cut the power here."""

    @pytest.fixture
    def flushed(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        calls: list[int] = []
        monkeypatch.setattr(os, "fsync", calls.append)
        return calls

    def test_each_is_forced_by_default(self, root: Path, flushed: list[int]) -> None:
        checkpoints = Checkpoints(root)
        checkpoints.save(1)
        first = len(flushed)
        assert first > 0
        checkpoints.save(2)
        assert len(flushed) > first

    def test_within_the_interval_none_is_forced(self, root: Path, flushed: list[int]) -> None:
        checkpoints = Checkpoints(root, force_every_s=3600)
        root.mkdir(parents=True)
        for number in range(3):
            checkpoints.save(number)
        assert flushed == []
        assert len(list_folders(root)) == 1
        assert checkpoints.load() == 2

    def test_the_last_one_that_was_forced_is_kept(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: now)
        checkpoints = Checkpoints(root, force_every_s=10)
        now = 11
        checkpoints.save("forced")
        checkpoints.settle()
        now = 12
        checkpoints.save("not forced")
        checkpoints.save("not forced either")
        assert len(list_folders(root)) == 2
        assert [saved.step for saved in checkpoints.all()] == [2]
        shutil.rmtree(list_folders(root)[-1])  # what a power cut may do
        assert Checkpoints(root).load() == "forced"
        now = 22
        checkpoints.save("forced again")
        checkpoints.settle()
        assert len(list_folders(root)) == 1
        assert checkpoints.load() == "forced again"

    @pytest.fixture
    def slow_disk(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
        """A disk that forces nothing before the event is set."""
        ready = threading.Event()
        monkeypatch.setattr(os, "fsync", lambda _: ready.wait(60))
        yield ready
        ready.set()

    @pytest.fixture
    def overdue(self, root: Path, monkeypatch: pytest.MonkeyPatch, slow_disk: threading.Event) -> Checkpoints:
        """Checkpoints of a second attempt on the slow disk, the next of which is to be forced."""
        Checkpoints(root, force_every_s=3600).save("of the first attempt")
        monkeypatch.setattr(time, "monotonic", lambda: 0.0)
        checkpoints = Checkpoints(root, force_every_s=10)
        monkeypatch.setattr(time, "monotonic", lambda: 11.0)
        return checkpoints

    def test_training_goes_on_while_the_disk_works(
        self, root: Path, overdue: Checkpoints, slow_disk: threading.Event
    ) -> None:
        for state in ("being forced", "later", "newest"):
            overdue.save(state)
        assert len(list_folders(root)) == 3
        assert [saved.step for saved in overdue.all()] == [3]
        shutil.rmtree(list_folders(root)[-1])  # what a power cut may do
        assert Checkpoints(root).load() == "being forced"
        shutil.rmtree(list_folders(root)[-1])
        assert Checkpoints(root).load() == "of the first attempt"
        slow_disk.set()

    def test_once_it_is_on_disk_the_one_before_it_goes(
        self, root: Path, overdue: Checkpoints, slow_disk: threading.Event
    ) -> None:
        overdue.save("forced")
        overdue.save("newest")
        slow_disk.set()
        overdue.settle()
        assert visible(root) == ["000002-step1", "000003-step2"]

    def test_a_disk_that_takes_longer_than_the_interval_is_waited_for(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, slow_disk: threading.Event
    ) -> None:
        now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: now)
        checkpoints = Checkpoints(root, force_every_s=10)
        now = 11
        checkpoints.save("being forced")
        waited = False
        original = Forcing.wait

        def wait(forcing: Forcing) -> bool:
            nonlocal waited
            waited = True
            slow_disk.set()
            return original(forcing)

        monkeypatch.setattr(Forcing, "wait", wait)
        now = 20
        checkpoints.save("not yet")
        assert not waited
        now = 21
        checkpoints.save("waits")
        assert waited

    def test_after_a_disk_has_failed_the_next_save_says_so(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(_: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        Checkpoints(root).save("of the first attempt")
        checkpoints = Checkpoints(root, force_every_s=1e-6)
        monkeypatch.setattr("cargobike.experiments.trial.checkpoints.folder.os.fsync", fail)
        checkpoints.save("not forced")
        checkpoints.settle()
        assert "could not be forced to disk" in caplog.text
        with pytest.raises(StoreError, match="Input/output error"):
            checkpoints.save("not saved")
        monkeypatch.undo()
        shutil.rmtree(list_folders(root)[-1])
        assert Checkpoints(root).load() == "of the first attempt"
        checkpoints.save("forced at once")
        assert [saved.step for saved in checkpoints.all()] == [1]
        assert len(visible(root)) == 1

    def test_the_end_of_a_trial_does_not_wait_for_a_thread_that_still_saves(self, root: Path) -> None:
        has_begun, may_end = threading.Event(), threading.Event()

        class Endless:
            def write_into(self, folder: Path) -> StoredState:
                has_begun.set()
                may_end.wait(60)
                raise OSError("nobody answers")

        checkpoints = Checkpoints(root, force_every_s=1e-6)
        checkpoints.save("forced")
        beside = threading.Thread(target=pytest.raises, args=(StoreError, checkpoints.save, Endless()))
        beside.start()
        assert has_begun.wait(60)
        checkpoints.settle()
        assert beside.is_alive()
        may_end.set()
        beside.join()

    def test_starting_over_waits_for_what_is_being_forced(self, root: Path) -> None:
        checkpoints = Checkpoints(root, force_every_s=1e-6)
        checkpoints.save("being forced")
        checkpoints.clear()
        assert visible(root) == []
        checkpoints.save("new")
        checkpoints.settle()
        assert checkpoints.load() == "new"

    def test_what_an_earlier_attempt_left_is_kept_until_there_is_one_that_was_forced(self, root: Path) -> None:
        Checkpoints(root).save("of the first attempt")
        second = Checkpoints(root, force_every_s=3600)
        second.save("of the second")
        second.save("of the second too")
        assert len(list_folders(root)) == 2
        shutil.rmtree(list_folders(root)[-1])
        assert Checkpoints(root).load() == "of the first attempt"


def test_the_reports_before_a_checkpoint_are_told_once_to_the_attempt_that_goes_on(root: Path) -> None:
    lost = KeptReport(number=7, attempt=2, step=3, metrics={"loss": "inf", "accuracy": 0.5})
    made = Reports(count=8, last_step=4, unconfirmed=(lost,))
    Checkpoints(root, remembering=Remembering(lambda: made)).save("state", step=4)
    told: list[Any] = []
    later = Checkpoints(root, remembering=Remembering(on_reports=told.append))
    assert later.exists
    assert told == []
    assert [later.load(), later.load()] == ["state", "state"]
    assert told == [made]
    other = Checkpoints(root.parent / "other", start_from=root, remembering=Remembering(on_reports=told.append))
    assert other.load() == "state"
    assert told == [made], "another trial has not made them"


def test_a_checkpoint_of_an_earlier_version_does_not_say_after_how_many_reports_it_was_saved(root: Path) -> None:
    saved = Checkpoints(root).save("state", step=4)
    meta = json.loads((saved.path / "meta.json").read_text())
    del meta["reports"]
    meta["points"] = [[3, {"loss": 0.5}]]
    (saved.path / "meta.json").write_text(json.dumps(meta))
    told: list[Any] = []
    assert Checkpoints(root, remembering=Remembering(on_reports=told.append)).load() == "state"
    assert told == [None]
