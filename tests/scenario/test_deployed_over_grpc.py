"""What users do with a deployment that speaks gRPC, on real processes."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import time
from typing import Any

import grpc
import pytest

from cargobike import serving
from cargobike.core.errors import DeploymentError, InvalidInputError, MissingLibraryError
from cargobike.serving.front.rpc.messages import message_class
from support.deployments import kill, lives, wait_until
from support.grpc_calls import WAIT_S, Calls, infer_request, refusal

TOKEN = "t" * 20


def areas(rows: list[Any]) -> list[Any]:
    for row in rows:
        if row["width"] < 0:
            time.sleep(2)
    return [row["width"] * row["height"] for row in rows]


def sides(width: int, height: int) -> Any:
    return infer_request("areas", {"width": ("INT64", [1], [width]), "height": ("INT64", [1], [height])})


def answer_of(calls: Calls, message: Any) -> list[int]:
    """Ask as clients do that try again when a connection is lost."""
    give_up_at = time.monotonic() + WAIT_S
    while True:
        with contextlib.suppress(grpc.RpcError):
            return list(calls("ModelInfer", message).outputs[0].contents.int64_contents)
        assert time.monotonic() < give_up_at, "no answer"


def test_a_deployment_speaks_grpc_on_one_port_whatever_ends() -> None:
    with serving.deploy("areas", areas, grpc=0, token=TOKEN) as deployment:
        status = deployment.status()
        assert f"grpc      {status.grpc_address}" in str(status)
        assert status.grpc_address.startswith("127.0.0.1:")
        with Calls(status.grpc_address) as stranger:
            assert refusal(lambda: stranger("ModelInfer", sides(2, 3)))[0] == "UNAUTHENTICATED"
        with Calls(status.grpc_address, TOKEN) as calls:
            assert answer_of(calls, sides(2, 3)) == [6]
            assert calls("ModelMetadata", message_class("ModelMetadataRequest")(name="areas")).versions == ["1"]
            code, words, _ = refusal(lambda: calls("ModelInfer", infer_request("areas", {})))
            assert (code, "no inputs were sent" in words) == ("INVALID_ARGUMENT", True)

            kill(status.front_pid)
            assert answer_of(calls, sides(4, 5)) == [20]
            wait_until(lambda: deployment.status().state == "serving")
            assert deployment.status().grpc_address == status.grpc_address
            front_pid = deployment.status().front_pid
            assert front_pid != status.front_pid

            kill(status.pid)
            wait_until(lambda: not lives(status.pid))
            assert answer_of(calls, sides(5, 6)) == [30]
            adopted = serving.start("areas", detach=True).status()
            assert (adopted.grpc_address, adopted.front_pid) == (status.grpc_address, front_pid)
            kill(front_pid)
            assert answer_of(calls, sides(6, 6)) == [36]

            assert refusal(lambda: calls("ModelInfer", sides(-1, 1), timeout_s=0.3))[0] == "DEADLINE_EXCEEDED"
        with pytest.raises(DeploymentError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already in use.*grpc=0"):
            serving.deploy("other", areas, grpc=int(status.grpc_address.rpartition(":")[2]))
    assert deployment.status().grpc_address == status.grpc_address
    with serving.start("areas") as again, Calls(status.grpc_address, TOKEN) as calls:
        assert again.status().grpc_address == status.grpc_address
        assert answer_of(calls, sides(6, 7)) == [42]
    with pytest.raises(ConnectionRefusedError), socket.create_connection(_place(status.grpc_address)):
        pass


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def test_what_cannot_be_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match=r"grpc=70000: a number from 0"):
        serving.deploy("areas", areas, grpc=70000)
    with pytest.raises(InvalidInputError, match="HTTP and gRPC need a port each"):
        serving.deploy("areas", areas, port=5000, grpc=5000)
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "grpc" else found(name, *more))
    with pytest.raises(MissingLibraryError, match=r"needs grpcio, .*pip install 'cargobike\[grpc\]'"):
        serving.deploy("areas", areas, grpc=0)
