"""What each framework is told about where the ranks are."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from cargobike.experiments.trial.meeting.jax import Jax
from cargobike.experiments.trial.meeting.tensorflow import Tensorflow
from cargobike.experiments.trial.meeting.torch import Torch
from cargobike.experiments.trial.meeting.way import Offer, Party, Peer, Ports
from cargobike.experiments.trial.meeting.ways import WAYS
from cargobike.experiments.trial.messages import Membership


class Here:
    """Rank 1 of 2, in the second attempt of trial 3."""

    id, attempt, rank, world_size, local_rank, local_world_size = "0003", 2, 1, 2, 0, 1


def party(*, is_open: bool = False, roles: tuple[str, ...] = ("worker", "worker", "server")) -> Party:
    peers = [
        Peer(
            address=f"10.0.0.{index}",
            offers={"torch": Offer(100, is_open), "tensorflow": Offer(200 + index), "jax": Offer(300)},
            gpus=(),
            checkpoint="",
        )
        for index in range(3)
    ]
    here: Any = Here()
    return Party(here, Membership(index=1, roles=roles, hosts=("a", "b", "b")), peers)


@pytest.fixture
def ports() -> Iterator[Ports]:
    ports = Ports("127.0.0.1")
    yield ports
    ports.close()


def test_torch_is_told_what_torchrun_would_tell() -> None:
    told = Torch().variables(party())
    assert (told["MASTER_ADDR"], told["MASTER_PORT"]) == ("10.0.0.0", "100")
    assert (told["RANK"], told["WORLD_SIZE"], told["LOCAL_RANK"], told["LOCAL_WORLD_SIZE"]) == ("1", "2", "0", "1")
    assert (told["GROUP_RANK"], told["GROUP_WORLD_SIZE"]) == ("1", "2")
    assert (told["TORCHELASTIC_RUN_ID"], told["TORCHELASTIC_RESTART_COUNT"]) == ("0003-2", "1")
    assert "TORCHELASTIC_USE_AGENT_STORE" not in told


def test_a_store_that_is_open_is_not_opened_again() -> None:
    assert Torch().variables(party(is_open=True))["TORCHELASTIC_USE_AGENT_STORE"] == "True"


def test_torch_offers_something_in_rank_0_only(ports: Ports) -> None:
    way = Torch()
    assert way.offer(ports, leads=False, world_size=2) == Offer()
    assert not way.leave(), "others need nothing of it"
    assert way.offer(ports, leads=True, world_size=2).port > 0


def test_tensorflow_knows_all_ranks_but_no_servers_of_ours() -> None:
    config = json.loads(Tensorflow().variables(party())["TF_CONFIG"])
    assert config == {
        "cluster": {"worker": ["10.0.0.0:200", "10.0.0.1:201"]},
        "task": {"type": "worker", "index": 1},
    }


def test_tensorflow_has_roles_of_its_own() -> None:
    config = json.loads(Tensorflow().variables(party(roles=("chief", "ps", "worker")))["TF_CONFIG"])
    assert config["cluster"] == {"chief": ["10.0.0.0:200"], "ps": ["10.0.0.1:201"], "worker": ["10.0.0.2:202"]}
    assert config["task"] == {"type": "ps", "index": 0}


def test_jax_meets_at_rank_0(ports: Ports) -> None:
    told = Jax().variables(party())
    assert told["JAX_COORDINATOR_ADDRESS"] == told["JAX_COORDINATOR_BIND_ADDRESS"] == "10.0.0.0:300"
    assert (told["JAX_NUM_PROCESSES"], told["JAX_PROCESS_ID"]) == ("2", "1")
    assert Jax().offer(ports, leads=False, world_size=2) == Offer()


def test_a_port_that_is_held_can_be_listened_on_by_this_process_only_with_the_same_option(ports: Ports) -> None:
    port = ports.hold()
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("", port))
    with socket.socket() as framework:
        framework.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        framework.bind(("", port))
        framework.listen()


def test_no_two_ways_share_a_name() -> None:
    assert len({way.name for way in WAYS}) == len(WAYS) == 3
