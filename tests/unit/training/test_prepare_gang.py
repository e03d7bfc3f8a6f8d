"""`prepare` in gangs of real processes: strategies, data, deadlines."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, TensorDataset

import cargobike.torch
from cargobike.core.errors import InvalidInputError
from cargobike.training.process_group import join_group
from support.digit_loops import fingerprint, network, train_digits
from support.rank_host import RankHost, gang


def test_all_strategies_that_average_gradients_compute_the_same(host: RankHost) -> None:
    options: dict[str, Any] = {"epochs": 2, "adam": True, "lr": 0.005}
    found = {name: host.ranks(train_digits, strategy=name, **options) for name in ("ddp", "zero1", "fsdp")}
    weights = [rank["weights"] for ranks in found.values() for rank in ranks]
    assert weights == pytest.approx([weights[0]] * 6, rel=1e-4)
    assert {name: ranks[0]["kind"] for name, ranks in found.items()} == {
        "ddp": "DistributedDataParallel",
        "zero1": "DistributedDataParallel",
        "fsdp": "FSDPSequential",
    }
    assert found["ddp"][0]["accuracy"] > 0.75
    assert found["ddp"][0]["sent"] == found["ddp"][0]["steps"] * 4 * (64 * 96 + 96 + 96 * 10 + 10)


def accumulate_in_three_ways() -> list[float]:
    found = []
    for strategy, accumulate, batch in (("ddp", 1, 32), ("ddp", 4, 8), ("fsdp", 4, 8)):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        x = torch.linspace(-1, 1, 150 * 64).view(150, 64)
        loader = DataLoader(TensorDataset(x, torch.arange(150) % 10), batch_size=batch)
        run = cargobike.torch.prepare(model, optimizer, loader, strategy=strategy, accumulate=accumulate)
        for inputs, labels in run.loader:
            nn.functional.cross_entropy(run.model(inputs), labels).backward()
            run.optimizer.step()
            run.optimizer.zero_grad()
        found += [fingerprint(run.plain_model), float(run.traffic.rounds)]
    return found


def test_accumulation_exchanges_once_for_many_batches_and_gives_the_same_model(host: RankHost) -> None:
    one, two = host.ranks(accumulate_in_three_ways)
    assert one == two
    # 75 samples a rank: steps of 32, 32 and 11; the last is a window of two small batches, 8 and 3
    assert one[1::2] == [3, 3, 3]
    assert one[2] == pytest.approx(one[0], rel=0.02)
    assert one[4] == pytest.approx(one[2], rel=1e-4)


def flat(lists: list[list[Any]]) -> list[Any]:
    return [item for one in lists for item in one]


def draw_epochs() -> dict[str, Any]:
    """Draw from prepared loaders of several kinds and return what this rank got."""
    data = TensorDataset(torch.arange(11))
    torch.manual_seed(100 + int(os.environ["RANK"]))  # ranks need not be seeded alike
    kinds: dict[str, DataLoader[Any]] = {
        "shuffled": DataLoader(data, batch_size=2, shuffle=True),
        "generator": DataLoader(data, batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(3)),
        "workers": DataLoader(data, batch_size=2, shuffle=True, num_workers=1, persistent_workers=True),
        "in order": DataLoader(data, batch_size=4),
        "batches": DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 3, drop_last=False)),
        "weighted": DataLoader(data, batch_size=4, sampler=torch.utils.data.WeightedRandomSampler([1.0] * 11, 9)),
    }
    found: dict[str, Any] = {}
    for name, loader in kinds.items():
        run = cargobike.torch.prepare(loader=loader)
        epochs = [[batch[0].tolist() for batch in run.loader] for _ in range(2)]
        found[name] = (run.uneven, len(run.loader), epochs)
    settings = DataLoader(data, batch_size=3, drop_last=True, collate_fn=len, worker_init_fn=print, timeout=0)
    kept = cargobike.torch.prepare(loader=settings, uneven="drop").loader
    found["kept"] = (kept.batch_size, kept.drop_last, kept.collate_fn is len, kept.worker_init_fn is print, list(kept))
    return found


def test_loaders_are_dealt_out_anew_in_each_epoch_and_keep_their_settings(host: RankHost) -> None:
    ranks = host.ranks(draw_epochs)
    for name in ("shuffled", "generator", "workers"):
        assert [rank[name][:2] for rank in ranks] == [("pad", 3), ("pad", 3)]
        epochs = [[flat(rank[name][2][epoch]) for rank in ranks] for epoch in (0, 1)]
        for first, second in epochs:
            assert len(first) == len(second) == 6
            assert set(first) | set(second) == set(range(11))
        assert epochs[0] != epochs[1]
    assert [rank["in order"] for rank in ranks] == [
        ("join", 2, [[[0, 2, 4, 6], [8, 10]]] * 2),
        ("join", 2, [[[1, 3, 5, 7], [9]]] * 2),
    ]
    batches = [rank["batches"][2][0] for rank in ranks]
    assert sorted(flat(batches[0] + batches[1])) == list(range(11))
    drawn = [flat(rank["weighted"][2][0]) for rank in ranks]
    assert [len(share) for share in drawn] == [5, 5]
    assert [rank["kept"] for rank in ranks] == [(3, True, True, True, [3])] * 2


class Numbers(IterableDataset[Any]):
    def __init__(self, length: int) -> None:
        self.length = length

    def __iter__(self) -> Iterator[Any]:
        return iter(torch.arange(self.length).float().view(-1, 1))


def train_unevenly() -> dict[str, Any]:
    """Train on data of different lengths in each rank under every policy; returns the steps taken."""
    rank = int(os.environ["RANK"])
    found: dict[str, Any] = {}

    def steps(name: str, loader: DataLoader[Any], **options: Any) -> None:
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        run = cargobike.torch.prepare(model, optimizer, loader, **options)
        count = 0
        for _ in range(2):
            for batch in run.loader:
                x = batch[0] if isinstance(batch, list) else batch
                run.optimizer.zero_grad()
                run.model(x).square().mean().backward()
                run.optimizer.step()
                count += 1
        found[name] = (run.uneven, count, round(fingerprint(run.plain_model), 5))

    own = TensorDataset(torch.ones(6 if rank == 0 else 10, 1))  # every rank has read its own part, of another length
    whole = TensorDataset(torch.ones(9, 1))
    for policy in ("drop", "pad", "join"):
        steps(f"whole {policy}", DataLoader(whole, batch_size=1), uneven=policy)
        steps(f"own {policy}", DataLoader(own, batch_size=2), uneven=policy, shard=False)
        steps(f"stream {policy}", DataLoader(Numbers(9), batch_size=1), uneven=policy)
    steps("zero1 join", DataLoader(own, batch_size=2), uneven="join", shard=False, strategy="zero1")
    steps("pad in windows", DataLoader(own, batch_size=2), uneven="pad", shard=False, accumulate=2)
    steps("drop in windows", DataLoader(own, batch_size=2), uneven="drop", shard=False, accumulate=2)
    steps("fsdp stream", DataLoader(Numbers(9), batch_size=1), strategy="fsdp")
    steps("diloco stream", DataLoader(Numbers(9), batch_size=1), strategy="diloco", sync_every=3)
    found["refused"] = []
    for options in ({"strategy": "fsdp"}, {"accumulate": 2}):
        try:
            steps("refused", DataLoader(own), uneven="join", **options)
        except InvalidInputError as error:
            found["refused"].append(str(error))
    return found


def test_uneven_data_never_hangs(host: RankHost) -> None:
    zero, one = host.ranks(train_unevenly)
    steps = {name: (zero[name][0], zero[name][1], one[name][1]) for name in zero if name != "refused"}
    assert steps == {
        "whole drop": ("drop", 8, 8),
        "whole pad": ("pad", 10, 10),
        "whole join": ("join", 10, 8),
        "own drop": ("drop", 6, 6),
        "own pad": ("pad", 10, 10),
        "own join": ("join", 6, 10),
        "stream drop": ("drop", 8, 8),
        "stream pad": ("pad", 10, 10),
        "stream join": ("join", 10, 8),
        "zero1 join": ("join", 6, 10),
        "pad in windows": ("pad", 10, 10),
        "drop in windows": ("drop", 6, 6),
        "fsdp stream": ("drop", 8, 8),
        "diloco stream": ("drop", 8, 8),
    }
    together = [name for name in steps if not name.startswith("diloco")]
    assert [zero[name][2] for name in together] == [one[name][2] for name in together]
    assert "use 'drop' or 'pad'" in zero["refused"][0]
    assert "do not go together" in zero["refused"][1]


def bring_other_data() -> str:
    model = nn.Linear(1, 1)
    data = TensorDataset(torch.ones(10 + 4 * int(os.environ["RANK"]), 1))
    try:
        cargobike.torch.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data))
    except InvalidInputError as error:
        return str(error)
    return ""


def test_different_data_in_each_rank_is_refused_instead_of_hanging(host: RankHost) -> None:
    assert ["say shard=False" in text for text in host.ranks(bring_other_data)] == [True, True]


def combine() -> list[Any]:
    rank = int(os.environ["RANK"])
    together = cargobike.torch
    order = []
    with together.main_first() as is_first:
        order.append(is_first)
    return [
        together.all_reduce(float(rank)),
        together.all_reduce(float(rank), weight=1 + 2 * rank),
        together.all_reduce(rank, "sum"),
        together.all_reduce(torch.tensor([rank, 3 - rank]), "max").tolist(),
        together.is_main(),
        order,
    ]


def test_values_are_combined_over_ranks(host: RankHost) -> None:
    assert host.ranks(combine) == [
        [0.5, 0.75, 1.0, [1, 3], True, [True]],
        [0.5, 0.75, 1.0, [1, 3], False, [False]],
    ]


def come_late(stage: str) -> str:
    rank = int(os.environ["RANK"])
    if stage == "meeting" and rank == 1:
        return "stayed away"
    group = join_group(timeout_s=4)
    try:
        if stage == "barrier" and rank != 1:
            cargobike.torch.barrier(timeout_s=3)
        if stage == "all_reduce" and rank != 1:
            cargobike.torch.all_reduce(1.0)
        if rank == 1:
            group.store.wait(["over"])
    finally:
        if rank != 1:
            group.store.set("over", "yes")
    return "done"


@pytest.mark.parametrize("stage", ["meeting", "barrier", "all_reduce"])
def test_deadlines_name_the_rank_that_is_missing(host: RankHost, stage: str) -> None:
    outcomes = host.run(*gang(come_late, 2, stage=stage))
    assert "WaitError" in outcomes[0].error
    assert "Rank 1" in outcomes[0].error, outcomes[0].error


def lose_a_rank() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = cargobike.torch.prepare(model, optimizer, timeout_s=20)
    for step in range(100):
        if step == 3 and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(torch.ones(4, 64)).sum().backward()
        optimizer.step()


def test_survivors_of_a_killed_rank_fail_instead_of_waiting(host: RankHost) -> None:
    outcomes = host.run(*gang(lose_a_rank))
    assert outcomes[1].exit_code == -signal.SIGKILL
    assert "RuntimeError" in outcomes[0].error or "DistBackendError" in outcomes[0].error


def use_a_group_of_their_own() -> str:
    dist.init_process_group("gloo")
    (model,) = cargobike.torch.prepare(network())
    model(torch.ones(1, 64)).sum().backward()
    return type(model).__name__ + str(cargobike.torch.all_reduce(1, "sum"))


def test_a_group_that_user_code_has_made_is_used(host: RankHost) -> None:
    assert host.ranks(use_a_group_of_their_own) == ["DistributedDataParallel2.0"] * 2
