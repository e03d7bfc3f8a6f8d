"""Parameter servers and workers as processes: asynchronous training, and a server that is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.rank_host import Call, RankHost, free_port
from support.server_loops import run_server, train_through_servers


def test_two_workers_train_through_two_servers(host: RankHost, tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    addresses = [f"127.0.0.1:{port}" for port in ports]
    done = str(tmp_path / "done")
    options: dict[str, Any] = {"staleness": 20, "compression": "int8", "parameter_compression": "bf16"}
    outcomes = host.run(
        *(Call(run_server, {"port": port, "checkpoint": None, "done": done}) for port in ports),
        *(
            Call(
                train_through_servers,
                {"rank": rank, "workers": 2, "addresses": addresses, "steps": 120, "done": done, **options},
            )
            for rank in range(2)
        ),
    )
    assert not any(outcome.error for outcome in outcomes), outcomes
    workers = [outcome.value for outcome in outcomes[2:]]
    for found in workers:
        assert found["accuracy"] > 0.8
        assert found["ratio"] == pytest.approx(4, abs=0.1)
    assert sum(found["applied"] + found["dropped"] for found in workers) == 240
    assert workers[0]["versions"] == workers[1]["versions"]


@pytest.mark.parametrize("keeps_file", [True, False])
def test_a_killed_server_comes_back_and_workers_find_it(host: RankHost, tmp_path: Path, keeps_file: bool) -> None:
    port, done = free_port(), str(tmp_path / "done")
    checkpoint = str(tmp_path / "shard.bin") if keeps_file else None
    outcomes = host.run(
        Call(run_server, {"port": port, "checkpoint": checkpoint, "done": done, "dies_at": 40, "workers": 2}),
        *(
            Call(
                train_through_servers,
                {
                    "rank": rank,
                    "workers": 2,
                    "addresses": [f"127.0.0.1:{port}"],
                    "steps": 100,
                    "done": done,
                    "outlives": True,
                },
            )
            for rank in range(2)
        ),
    )
    assert not any(outcome.error for outcome in outcomes), outcomes
    assert outcomes[0].value == (1 if keeps_file else 0)
    for outcome in outcomes[1:]:
        assert outcome.value["reconnects"] >= 1
        assert outcome.value["applied"] == 100
        assert outcome.value["accuracy"] > 0.7
