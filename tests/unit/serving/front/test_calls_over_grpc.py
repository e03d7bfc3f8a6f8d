"""Calls over gRPC to a front: the same tokens, limits, log and figures as over HTTP."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pyarrow.parquet as pq
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cargobike.core.version import __version__
from cargobike.serving.front.rpc.messages import message_class
from cargobike.serving.specification import Limits, Logging
from cargobike.serving.wire import EndFront, Load
from support.grpc_calls import Calls, infer_request, refusal
from support.served import Deployment, serving

PREDICT, ADMINISTER = "p" * 32, "a" * 32


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Deployment]:
    """A deployment with tokens, a short longest body and a log."""
    tokens = {digest(PREDICT): ["predict"], digest(ADMINISTER): ["administer"]}
    limits = Limits(body_bytes=2000, deadline_s=20.0)
    with serving("score", tokens=tokens, limits=limits, logging=Logging(flush_s=0.1), grpc_port=0) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def calls(guarded: Deployment) -> Iterator[Calls]:
    with Calls(address(guarded), PREDICT) as made:
        yield made


def address(deployment: Deployment) -> str:
    return f"127.0.0.1:{deployment.grpc_port}"


def people(*ages: int, model: str = "score", **more: Any) -> Any:
    return infer_request(model, {"age": ("INT32", [len(ages)], ages)}, **more)


def test_rows_are_answered(calls: Calls) -> None:
    towns = infer_request("score", {"age": ("INT32", [1, 1], [3]), "town": ("BYTES", [1], [b"Kista"])}, id="mine")
    answer = calls("ModelInfer", towns)
    assert (answer.model_name, answer.model_version, answer.id) == ("score", "1", "mine")
    assert [(output.name, list(output.contents.fp64_contents)) for output in answer.outputs] == [("score", [3.05])]
    assert list(calls("ModelInfer", people(3, 4, model_version="1")).outputs[0].shape) == [2]


def test_the_server_and_the_model_say_what_they_are(guarded: Deployment, calls: Calls) -> None:
    with Calls(address(guarded)) as stranger:
        assert stranger("ServerLive").live
        assert stranger("ServerReady").ready
        ready = message_class("ModelReadyRequest")
        assert stranger("ModelReady", ready(name="shop")).ready
        assert not stranger("ModelReady", ready(name="shop", version="2")).ready
        assert (stranger("ServerMetadata").name, stranger("ServerMetadata").version) == ("cargobike", __version__)
        asked = message_class("ModelMetadataRequest")(name="score")
        assert refusal(lambda: stranger("ModelMetadata", asked))[0] == "UNAUTHENTICATED"
    described = calls("ModelMetadata", asked)
    assert (described.name, list(described.versions), described.platform) == ("score", ["1"], "cargobike")
    assert [(each.name, each.datatype, list(each.shape)) for each in described.inputs] == [
        ("age", "INT32", [-1]),
        ("town", "BYTES", [-1]),
    ]
    assert [each.name for each in described.outputs] == ["score"]


@pytest.mark.parametrize(
    ("token", "code", "kind"),
    [
        ("", "UNAUTHENTICATED", "no-token"),
        ("wrong", "UNAUTHENTICATED", "wrong-token"),
        (ADMINISTER, "PERMISSION_DENIED", "wrong-scope"),
    ],
)
def test_tokens_open_what_they_are_for(guarded: Deployment, token: str, code: str, kind: str) -> None:
    with Calls(address(guarded), token) as stranger:
        found, words, hints = refusal(lambda: stranger("ModelInfer", people(3)))
        assert (found, hints["cargobike-kind"]) == (code, kind)
        assert PREDICT not in words
        with pytest.raises(grpc.RpcError, match=code):  # a token comes before what is no message
            stranger.send("ModelInfer", b"\xff\xff")


def test_what_is_wrong_is_named(calls: Calls) -> None:
    wrong = infer_request("score", {"age": ("INT64", [2], [3, 2**40])})
    code, words, hints = refusal(lambda: calls("ModelInfer", wrong, x_request_id="wrong-1"))
    assert (code, hints["x-request-id"], hints["cargobike-kind"]) == ("INVALID_ARGUMENT", "wrong-1", "wrong-row")
    assert words.startswith(f"row 1, field 'age': {2**40} was given; a number (INT32) is needed")
    for message, expected, part in (
        (people(3, model="scroe"), "NOT_FOUND", "Did you mean 'score'?"),
        (people(3, model_version="9"), "NOT_FOUND", "Version 9 is not served here; these are: 1."),
        (people(3, model_version="new"), "NOT_FOUND", "versions are numbers"),
        (people(), "INVALID_ARGUMENT", "No rows were sent"),
    ):
        code, words, _ = refusal(lambda message=message: calls("ModelInfer", message))
        assert (code, part in words) == (expected, True), words
    code, words, _ = refusal(lambda: calls.send("ModelInfer", b"\xff\xff"))
    assert (code, words.startswith("The body is no ModelInferRequest")) == ("INVALID_ARGUMENT", True)
    assert refusal(lambda: calls("ModelInfer", people(*[300] * 1500)))[0] == "RESOURCE_EXHAUSTED"
    assert refusal(lambda: calls("ModelInfer", people(3), x_deadline_s="soon"))[0] == "INVALID_ARGUMENT"


def test_calls_are_in_the_log_and_in_the_figures(guarded: Deployment, calls: Calls) -> None:
    call = calls.begin("ModelInfer", people(3), x_request_id="logged-1")
    assert dict(call.trailing_metadata())["x-request-id"] == "logged-1"
    figures = httpx.get(f"{guarded.url}/metrics", headers={"Authorization": f"Bearer {PREDICT}"}).text
    assert 'cargobike_grpc_answers_total{deployment="shop",code="OK"}' in figures
    assert 'cargobike_request_seconds_count{deployment="shop",version="1"}' in figures
    folder = Path(guarded.folder) / "deployments" / "shop" / "log"
    pause = threading.Event()
    for _ in range(400):
        tables = [pq.read_table(file) for file in folder.rglob("*.parquet")]
        if any("logged-1" in table.column("request_id").to_pylist() for table in tables):
            break
        pause.wait(0.05)
    else:
        pytest.fail("the call is not in the log")


def test_a_client_that_asks_too_often_is_told_when_to_come_back() -> None:
    with serving("double", limits=Limits(requests_per_s=0.01), grpc_port=0) as deployment:
        number = infer_request("double", {"x": ("FP64", [1], [2.0])})
        with Calls(address(deployment)) as calls:
            assert list(calls("ModelInfer", number).outputs[0].contents.fp64_contents) == [4.0]
            code, _, hints = refusal(lambda: calls("ModelInfer", number))
        assert (code, hints["cargobike-kind"]) == ("RESOURCE_EXHAUSTED", "too-often")
        assert 0 < int(hints["retry-after"]) <= 100
        assert 0 < int(hints["grpc-retry-pushback-ms"]) <= 100_000


def test_a_full_queue_refuses_deadlines_are_kept_and_the_end_waits_for_answers(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    deployment = Deployment("gated", limits=Limits(batch=1, queue=4), grpc_port=0)
    row = infer_request("gated", {"x": ("INT64", [1], [7])})
    try:
        deployment.start_front()
        deployment.start_replica(1, GATE=str(gate))
        with Calls(address(deployment)) as calls:
            at_work = calls.begin("ModelInfer", row)
            deployment.wait_for(Load, lambda load: load.at_work == 1)
            waiting = [calls.begin("ModelInfer", row) for _ in range(3)]
            deployment.wait_for(Load, lambda load: load.waiting == 3)
            code, words, hints = refusal(lambda: calls("ModelInfer", row))
            assert (code, hints["cargobike-kind"], hints["retry-after"]) == ("RESOURCE_EXHAUSTED", "queue-full", "1")
            assert "3 rows are waiting, 4 may" in words
            waiting.pop().cancel()
            deployment.wait_for(Load, lambda load: load.waiting == 2)
            assert refusal(lambda: calls("ModelInfer", row, timeout_s=0.2))[0] == "DEADLINE_EXCEEDED"
            code, words, _ = refusal(lambda: calls("ModelInfer", row, x_deadline_s="0.2"))
            assert (code, "in the queue" in words) == ("DEADLINE_EXCEEDED", True)
            deployment.wait_for(Load, lambda load: load.waiting == 2)
            deployment.say(EndFront(within_s=20.0))
            gate.touch()
            for call in (at_work, *waiting):
                assert list(call.result().outputs[0].contents.int64_contents) == [7]
        assert deployment.end_of_front() == 0
    finally:
        deployment.close()


def test_calls_can_be_encrypted(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop")])
    now = datetime.datetime.now(datetime.UTC)
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1)).add_extension(place, False)
    certificate = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    (tmp_path / "certificate.pem").write_bytes(certificate)
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    files: dict[str, Any] = {"tls_certificate": str(tmp_path / "certificate.pem"), "tls_key": str(tmp_path / "key.pem")}
    with serving("double", grpc_port=0, **files) as deployment:
        with Calls(address(deployment), certificate=certificate) as calls:
            number = infer_request("double", {"x": ("FP64", [1], [2.0])})
            assert list(calls("ModelInfer", number).outputs[0].contents.fp64_contents) == [4.0]
        with Calls(address(deployment)) as calls:
            assert refusal(lambda: calls.send("ServerLive", b""))[0] == "UNAVAILABLE"
