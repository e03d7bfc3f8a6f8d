"""A loop that goes on from a checkpoint trains every row of an epoch once, and ends where it would have ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.rank_host import RankHost
from support.resuming_loops import (
    OPTIMIZERS,
    Cell,
    as_text,
    counted,
    lose_and_go_on,
    only_go_on,
)

STRATEGIES = ("ddp", "zero1", "fsdp", "local_sgd", "diloco")
MATRIX = [
    Cell(strategy, optimizer, sharded=sharded, moment=moment)
    for strategy in STRATEGIES
    for optimizer in OPTIMIZERS
    for sharded in (False, True)
    for moment in ("middle", "end")
    if not (strategy == "zero1" and sharded)  # refused, with what to do instead
]
FEW = [
    Cell("ddp"),
    Cell("fsdp", "adamw", sharded=True, moment="end"),
    Cell("fsdp", "sgd"),
    Cell("fsdp", "adagrad"),
    Cell("zero1", "adagrad"),
    Cell("diloco", sharded=True),
]
LOADING = [
    *(
        Cell(loading=loading)
        for loading in ("in order", "generator", "workers", "kept workers", "batches", "drop_last")
    ),
    *(Cell(moment=moment) for moment in ("before the step", "last batch")),
    *(Cell("zero1", options={"uneven": uneven}) for uneven in ("join", "drop")),
    Cell(options={"uneven": "join"}, moment="last batch"),
    Cell(options={"accumulate": 3}),
    Cell(loading="one by one", rows=7),
    Cell(loading="stream", rows=24),
    Cell("fsdp", loading="stream, workers", rows=32, moment="middle"),
]
OWN = Cell(loading="own", options={"shard": False})


def test_ranks_with_data_of_their_own_go_on_in_it(host: RankHost, tmp_path: Path) -> None:
    ranks = host.ranks(lose_and_go_on, cells=[OWN], folder=str(tmp_path))
    for number, rank in enumerate(ranks):
        first, second, *_ = rank[OWN.name]
        for counter in counted(first, second).values():
            assert counter == dict.fromkeys(range(number, 2 * OWN.rows, 2), 1)
    assert ranks[0][OWN.name][2] == pytest.approx(ranks[0][OWN.name][3], rel=1e-4, abs=1e-6)
    (alone,) = host.ranks(only_go_on, 1, cells=[OWN], folder=str(tmp_path))  # what is left cannot be known: begins anew
    assert [len(rows) for rows in counted(alone[OWN.name][0]).values()] == [0, OWN.rows, OWN.rows]


def check_rows(cell: Cell, world_size: int, first: list[Any], second: list[Any]) -> None:
    """Check that every row was trained once in every epoch, but for what the policy adds or leaves out at its end."""
    epochs = counted(*first, *second)
    text = f"{cell.name}, then {world_size} ranks: {as_text(epochs)}"
    policy = cell.options.get("uneven", "drop" if cell.loading.startswith("stream") else "pad")
    most = max(2, world_size)
    rows_per_item = 2 if cell.loading == "batches" else 1
    may_miss = most - 1 if policy == "drop" else 0
    may_repeat = (most - 1) * rows_per_item if policy == "pad" else 0
    if cell.loading == "drop_last":
        may_miss = 2 * most - 1
    for counter in epochs.values():
        assert len(counter) >= cell.rows - may_miss, text
        assert sum(counter.values()) - len(counter) <= may_repeat, text
        assert set(counter) <= set(range(cell.rows)), text


def check_all(host: RankHost, cells: list[Cell], folder: Path, others: tuple[int, ...]) -> None:
    ranks = host.ranks(lose_and_go_on, cells=cells, folder=str(folder), deadline_s=300)
    for cell in cells:
        first, second = [rank[cell.name][0] for rank in ranks], [rank[cell.name][1] for rank in ranks]
        check_rows(cell, 2, first, second)
        _, _, resumed, plain = ranks[0][cell.name]
        assert len(plain) == 26
        if is_exact(cell):
            assert resumed == pytest.approx(plain, rel=1e-4, abs=1e-6), cell.name
    for world_size in others:
        gone_on = host.ranks(only_go_on, world_size, cells=cells, folder=str(folder), deadline_s=300)
        for cell in cells:
            first = [rank[cell.name][0] for rank in ranks]
            check_rows(cell, world_size, first, [rank[cell.name][0] for rank in gone_on])


def is_exact(cell: Cell) -> bool:
    """Tell whether all of an optimizer's state is saved: ranks that train alone go on with that of rank 0."""
    return cell.strategy not in ("local_sgd", "diloco") or cell.optimizer == "sgd"


def test_rows_are_trained_once_by_those_that_go_on(host: RankHost, tmp_path: Path) -> None:
    check_all(host, FEW, tmp_path, others=(1,))


@pytest.mark.timeout(900)  # each of three gangs may take 300 s
def test_every_strategy_goes_on_with_every_optimizer(host: RankHost, tmp_path: Path) -> None:
    check_all(host, MATRIX, tmp_path, others=(1, 3))


@pytest.mark.timeout(900)  # each of three gangs may take 300 s
def test_every_way_of_loading_goes_on(host: RankHost, tmp_path: Path) -> None:
    check_all(host, LOADING, tmp_path, others=(1, 3))
