"""One server's share of the parameters: versions, readers, clocks, rows, counts; without any connection."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from cargobike.core.errors import StoreError
from cargobike.training.parameter_server.codecs import memory_of
from cargobike.training.parameter_server.messages import Counts, Declare, Pull, Push, Pushed, Rule, TensorSpec, Terms
from cargobike.training.parameter_server.shard import RefusedError, Shard
from cargobike.training.parameter_server.shard_file import load_shard, save_shard

DENSE = TensorSpec("w", (2, 2))
TABLE = TensorSpec("table", (3, 2), by_rows=True)
OTHER = TensorSpec("other", (2,), by_rows=True)
FIRST = torch.arange(12.0)


def bytes_of(*tensors: torch.Tensor) -> torch.Tensor:
    """Return tensors as one body of bytes, as it comes from the network."""
    return torch.frombuffer(bytearray(b"".join(bytes(memory_of(tensor)) for tensor in tensors)), dtype=torch.uint8)


def shard(*tensors: TensorSpec, rule: Rule | None = None, **terms: Any) -> Shard:
    """Make a shard with values 0, 1, 2… and the workers `a` (rank 0) and `b` (rank 1)."""
    tensors = tensors or (DENSE,)
    size = sum(spec.size for spec in tensors)
    made = Shard(Declare(tensors, rule or Rule(lr=1.0), Terms(**terms)), bytes_of(FIRST[:size]))
    made.enter("a", 0)
    made.enter("b", 1)
    return made


def push(
    made: Shard, worker: str, sequence: int, *, base: int = 0, gradient: float = 1.0, lr: float | None = None
) -> Pushed:
    """Push the same gradient for all dense numbers."""
    body = bytes_of(torch.full((made.dense_size,), gradient), torch.ones(1))
    message = Push(base, sequence, lr=lr, rows=(0,) * len(made.row_rules))
    answer, rest = made.push(worker, message, body)
    assert len(rest) == 4, "what follows the gradient is left for what was asked for with it"
    return answer


def values_of(made: Shard) -> list[float]:
    with made.reading(Pull(), torch.empty(0, dtype=torch.uint8)) as (_, pieces):
        return [float(x) for piece in pieces for x in piece.reshape(-1)]


NONE = torch.empty(0, dtype=torch.uint8)


def test_dense_values_come_first_then_each_table_in_its_order() -> None:
    made = shard(TABLE, DENSE, OTHER)
    assert made.dense_size == 4
    assert values_of(made) == list(range(12))
    assert [rule.weights.tolist() for rule in made.row_rules] == [[[4, 5], [6, 7], [8, 9]], [10, 11]]


@pytest.mark.parametrize("numbers", [3, 5])
def test_first_values_must_fit_the_shapes(numbers: int) -> None:
    with pytest.raises(RefusedError, match="do not fit the shapes") as caught:
        Shard(Declare((DENSE,), Rule(), Terms()), bytes_of(torch.zeros(numbers)))
    assert caught.value.refusal.reason == "malformed"


def test_a_gradient_makes_a_version_and_is_counted_with_its_delay() -> None:
    made = shard()
    assert push(made, "a", 0) == Pushed(is_applied=True, version=1, delay=0)
    answers = [push(made, "a", 1, base=1), push(made, "b", 0, base=0), push(made, "a", 2, base=9)]
    assert [(answer.is_applied, answer.version, answer.delay) for answer in answers] == [
        (True, 2, 0),
        (True, 3, 2),
        (True, 4, 0),
    ]
    assert values_of(made) == [-4, -3, -2, -1]
    assert made.counts() == Counts(True, version=4, applied=4, delay_sum=2, delay_max=2)


def test_a_gradient_that_comes_twice_is_applied_once() -> None:
    made = shard()
    push(made, "a", 5)
    for sequence in (5, 4):
        again = push(made, "a", sequence)
        assert (again.is_applied, again.version, again.delay) == (True, 1, 1)
    assert push(made, "b", 5).version == 2, "each worker counts for itself"
    assert values_of(made) == [-2, -1, 0, 1]
    assert (made.counts().applied, made.counts().repeated) == (2, 2)
    assert (made.workers["a"].clock, made.workers["b"].clock) == (1, 1)


def test_only_gradients_that_are_too_late_are_dropped() -> None:
    made = shard(staleness=1)
    push(made, "a", 0)
    assert push(made, "b", 0, base=0).is_applied, "as late as is allowed"
    late = push(made, "b", 1, base=0)
    assert (late.is_applied, late.version, late.delay) == (False, 2, 2)
    assert values_of(made) == [-2, -1, 0, 1]
    assert (made.counts().applied, made.counts().dropped, made.counts().delay_max) == (2, 1, 1)
    assert made.workers["b"].clock == 2, "a step was made all the same"
    waits = shard(staleness=0, on_stale="wait")
    push(waits, "a", 0)
    assert push(waits, "b", 0).is_applied, "where fast workers wait, nothing is dropped"


def test_a_gradient_may_bring_its_learning_rate_and_count_less_when_late() -> None:
    made = shard(scale_by_delay=True)
    push(made, "a", 0, gradient=4.0, lr=0.5)
    assert values_of(made) == [-2, -1, 0, 1]
    push(made, "b", 0, base=0, gradient=4.0)
    assert values_of(made) == [-4, -3, -2, -1]


def test_who_reads_sees_one_version_while_others_write() -> None:
    made = shard()
    with made.reading(Pull(), NONE) as (version, pieces):
        push(made, "a", 0)
        with made.reading(Pull(), NONE) as (later, newer):
            push(made, "a", 1, base=1)
            assert (version, later, made.version) == (0, 1, 2)
            assert pieces[0].tolist() == [0, 1, 2, 3]
            assert newer[0].tolist() == [-1, 0, 1, 2]
    assert values_of(made) == [-2, -1, 0, 1]


def test_memory_is_used_again_only_when_its_last_reader_has_gone() -> None:
    made = shard()
    with made.reading(Pull(), NONE) as (_, first):
        with made.reading(Pull(), NONE) as (_, same):
            assert same[0].data_ptr() == first[0].data_ptr()
            push(made, "a", 0)
        with made.reading(Pull(), NONE) as (_, second):
            push(made, "a", 1)
            assert first[0].tolist() == [0, 1, 2, 3]
            assert second[0].tolist() == [-1, 0, 1, 2]
    with made.reading(Pull(), NONE) as (_, third):
        memories = {piece[0].data_ptr() for piece in (first, second, third)}
        assert len(memories) == 3
        push(made, "a", 2)
    with made.reading(Pull(), NONE) as (_, fourth):
        assert fourth[0].data_ptr() == first[0].data_ptr()
        push(made, "a", 3)
    with made.reading(Pull(), NONE) as (_, fifth):
        assert fifth[0].data_ptr() in memories
    assert values_of(made) == [-4, -3, -2, -1]


def test_without_readers_the_same_memory_changes() -> None:
    made = shard()
    with made.reading(Pull(), NONE) as (_, before):
        pass
    push(made, "a", 0)
    with made.reading(Pull(), NONE) as (_, after):
        assert after[0].data_ptr() == before[0].data_ptr()


def test_little_memory_is_kept_for_readers_that_have_gone() -> None:
    made = shard()
    open_readings = []
    for sequence in range(5):
        reading = made.reading(Pull(), NONE)
        reading.__enter__()
        open_readings.append(reading)
        push(made, "a", sequence)
    for reading in open_readings:
        reading.__exit__(None, None, None)
    assert len(made._spare) == 2
    assert values_of(made) == [-5, -4, -3, -2]


def test_rows_change_where_they_were_touched_and_are_read_by_number() -> None:
    made = shard(DENSE, TABLE, OTHER)
    rows, gradient = torch.tensor([2, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    body = bytes_of(torch.zeros(4), rows, gradient, torch.tensor([1]), torch.tensor([5.0]), torch.ones(2))
    answer, rest = made.push("a", Push(0, 0, rows=(2, 1)), body)
    assert (answer.version, len(rest)) == (1, 8)
    assert values_of(made) == [0, 1, 2, 3, 1, 1, 6, 7, 7, 7, 10, 6]
    with made.reading(Pull(rows=(2, None)), bytes_of(torch.tensor([2, 1]))) as (_, pieces):
        assert [piece.tolist() for piece in pieces[1:]] == [[[7, 7], [6, 7]], [10, 6]]
        made.push("a", Push(1, 1, rows=(0, 1)), bytes_of(torch.zeros(4), torch.tensor([0]), torch.tensor([1.0])))
        assert pieces[2].tolist() == [10, 6], "what was read stays as it was"
    with made.reading(Pull(rows=(1, 1)), bytes_of(torch.tensor([0]), torch.tensor([0]))) as (_, pieces):
        assert [piece.tolist() for piece in pieces[1:]] == [[[1, 1]], [9]]


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_do_not_exist_are_refused(row: int) -> None:
    made = shard(DENSE, TABLE)
    body = bytes_of(torch.zeros(4), torch.tensor([row, 1]), torch.ones(2, 2))
    with pytest.raises(RefusedError, match="row numbers must be below 3") as caught:
        made.push("a", Push(0, 0, rows=(2,)), body)
    assert caught.value.refusal.reason == "malformed"
    with pytest.raises(RefusedError, match="below 3"), made.reading(Pull(rows=(1,)), bytes_of(torch.tensor([row]))):
        pass
    assert made.version == 0


@pytest.mark.parametrize("rows", [(), (0, 0)])
def test_each_table_needs_its_rows(rows: tuple[int, ...]) -> None:
    with pytest.raises(RefusedError, match=f"{len(rows)} sets of rows for 1 tensors"):
        shard(DENSE, TABLE).push("a", Push(0, 0, rows=rows), bytes_of(torch.zeros(4)))


def test_row_numbers_that_are_cut_short_are_refused() -> None:
    body = bytes_of(torch.zeros(4), torch.tensor([0]))
    with pytest.raises(RefusedError, match="row numbers"):
        shard(DENSE, TABLE).push("a", Push(0, 0, rows=(2,)), body)


def test_a_table_without_rows_is_no_trouble() -> None:
    made = shard(DENSE, TensorSpec("none", (0, 2), by_rows=True))
    assert push(made, "a", 0).is_applied


# -- turns -----------------------------------------------------------------------------------------------------------


def is_refused(made: Shard, worker: str) -> str:
    """Return why a worker must wait; empty if it may go on."""
    try:
        made.await_turn(worker, 0.0)
    except RefusedError as error:
        return error.refusal.message if error.refusal.reason == "waited" else f"{error.refusal}"
    return ""


def test_a_worker_may_be_as_far_ahead_as_was_agreed() -> None:
    made = shard(staleness=1, on_stale="wait")
    push(made, "a", 0)
    assert is_refused(made, "a") == ""
    push(made, "a", 1)
    assert is_refused(made, "a") == "waited 0 s for worker 1, which has made 0 steps; worker 0 2 (staleness=1)"
    assert is_refused(made, "b") == "", "the slowest never waits"
    push(made, "b", 0)
    assert is_refused(made, "a") == ""
    push(made, "a", 2)
    made.leave("b")
    assert is_refused(made, "a") == "", "one that has left is not waited for"


@pytest.mark.parametrize("terms", [{"staleness": 1}, {"on_stale": "wait"}])
def test_workers_wait_only_where_that_was_agreed(terms: dict[str, Any]) -> None:
    made = shard(**terms)
    for sequence in range(5):
        push(made, "a", sequence)
    assert is_refused(made, "a") == ""


def test_the_slowest_of_several_is_named() -> None:
    made = shard(staleness=0, on_stale="wait")
    push(made, "b", 0)
    made.enter("c", 2)
    push(made, "a", 0)
    push(made, "a", 1)
    assert "worker 2, which has made 0 steps" in is_refused(made, "a")


def test_a_new_worker_starts_at_the_pace_of_the_slowest_that_is_there() -> None:
    made = shard()
    for sequence in range(3):
        push(made, "a", sequence)
    push(made, "b", 0)
    made.enter("c", 2)
    assert made.workers["c"].clock == 1
    made.leave("b")
    made.leave("c")
    made.enter("d", 3)
    assert made.workers["d"].clock == 3
    made.enter("b", 1)
    assert (made.workers["b"].clock, made.workers["b"].connections) == (1, 1), "one that comes back goes on"
    made.leave("unknown")


def test_a_worker_with_two_connections_is_there_until_both_are_gone() -> None:
    made = shard(staleness=0, on_stale="wait")
    made.enter("b", 1)
    push(made, "a", 0)
    made.leave("b")
    assert is_refused(made, "a")
    made.leave("b")
    assert not is_refused(made, "a")


def test_only_worker_0_steps_during_the_warm_up() -> None:
    made = shard(warmup_steps=2)
    assert is_refused(made, "a") == ""
    push(made, "a", 0)
    assert "worker 0 to finish the warm-up: it is at step 1 of 2" in is_refused(made, "b")
    push(made, "a", 1)
    assert is_refused(made, "b") == ""


@pytest.mark.parametrize("way", ["push", "leave"])
def test_who_waits_hears_of_the_change(way: str) -> None:
    made = shard(staleness=0, on_stale="wait")
    push(made, "a", 0)
    asleep, waited_s = threading.Event(), list[float | None]()
    wait = made.changed.wait

    def watched(timeout: float | None = None) -> bool:
        waited_s.append(timeout)
        asleep.set()  # the lock is held until the wait has begun
        return wait(60)

    made.changed.wait = watched  # type: ignore[method-assign]
    thread = threading.Thread(target=made.await_turn, args=["a", 30.0], daemon=True)
    thread.start()
    assert asleep.wait(30)
    if way == "push":
        push(made, "b", 0)
    else:
        made.leave("b")
    thread.join(30)
    assert not thread.is_alive()
    assert waited_s == [1.0]


def test_another_worker_means_the_same_parameters_whatever_its_terms() -> None:
    made = shard()
    same = Declare((DENSE,), Rule(lr=7.0), Terms(staleness=3))
    assert made.same_as(same)
    assert not made.same_as(msgspec.structs.replace(same, tensors=(TensorSpec("w", (4,)),)))


# -- files -----------------------------------------------------------------------------------------------------------


def test_a_file_brings_back_values_slots_clocks_and_sequences(tmp_path: Path) -> None:
    made = shard(DENSE, TABLE, rule=Rule("adam", lr=0.1), staleness=0, on_stale="wait")
    body = bytes_of(torch.ones(4), torch.tensor([1]), torch.ones(1, 2))
    for sequence in (3, 4):
        made.push("a", Push(0, sequence, rows=(1,)), body)
    push(made, "b", 0)
    path = tmp_path / "new" / "shard.bin"
    assert save_shard(made, path) == 3
    assert [entry.name for entry in path.parent.iterdir()] == ["shard.bin"]
    back = load_shard(path)
    assert back is not None
    assert values_of(back) == values_of(made)
    assert (back.version, back.declared, back.counts().restored) == (3, made.declared, 1)
    ours, theirs = [[shard.dense_rule, *shard.row_rules] for shard in (made, back)]
    assert [rule.steps for rule in theirs] == [rule.steps for rule in ours] == [3, 2]
    for mine, other in zip(ours, theirs, strict=True):
        assert len(mine.slots) == len(other.slots) == 2
        assert all(torch.equal(a, b) for a, b in zip(mine.slots, other.slots, strict=True))
    workers = {name: (w.rank, w.clock, w.connections, w.last_sequence) for name, w in back.workers.items()}
    assert workers == {"a": (0, 2, 0, 4), "b": (1, 1, 0, 0)}
    back.enter("a", 0)
    made.push("a", Push(0, 5, rows=(1,)), body)
    back.push("a", Push(0, 5, rows=(1,)), body)
    assert values_of(back) == values_of(made), "both go on alike"
    save_shard(back, path)
    again = load_shard(path)
    assert again is not None
    assert again.counts().restored == 2


def test_without_a_file_there_is_no_shard(tmp_path: Path) -> None:
    assert load_shard(tmp_path / "missing") is None


def test_a_file_that_is_cut_anywhere_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "shard.bin"
    save_shard(shard(), path)
    whole = path.read_bytes()
    cuts = range(len(b"cargobike shard 1\n"), len(whole))
    for cut in cuts:
        path.write_bytes(whole[:cut])
        with pytest.raises(StoreError, match="is damaged"):
            load_shard(path)
    assert len(cuts) > 50
    path.write_bytes(whole[:10])
    with pytest.raises(StoreError, match="not a parameter server's checkpoint"):
        load_shard(path)


def test_all_of_a_shard_is_on_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "not" / "there" / "shard.bin"
    forced: list[int] = []

    def fsync(fd: int) -> None:
        forced.append(os.fstat(fd).st_size)
        assert not path.exists()

    monkeypatch.setattr("cargobike.training.parameter_server.shard_file.os.fsync", fsync)
    save_shard(shard(), path)
    assert forced == [path.stat().st_size]


def test_a_save_that_fails_leaves_the_older_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shard.bin"
    made = shard()
    save_shard(made, path)
    before = path.read_bytes()
    push(made, "a", 0)

    def refuse(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("cargobike.training.parameter_server.shard_file.os.fsync", refuse)
    with pytest.raises(OSError, match="Input/output"):
        save_shard(made, path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["shard.bin"]
