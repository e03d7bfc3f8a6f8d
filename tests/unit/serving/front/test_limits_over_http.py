"""Who may ask, how much, how often and how slowly; and answers that come piece by piece."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pyarrow.parquet as pq
import pytest

from cargobike.serving.specification import Limits, Logging
from cargobike.serving.wire import AdminAnswer, AdminRequest, Load
from support.served import Deployment, post, serving

PREDICT, ADMINISTER = "p" * 32, "a" * 32


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Deployment]:
    """A deployment with tokens, small limits and a log."""
    tokens = {digest(PREDICT): ["predict"], digest(ADMINISTER): ["predict", "administer"]}
    limits = Limits(body_bytes=2000, deadline_s=20.0)
    with serving("score", tokens=tokens, limits=limits, logging=Logging(flush_s=0.1, redact=("town",))) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def streaming() -> Iterator[Deployment]:
    """A deployment whose model answers piece by piece."""
    with serving("streaming") as deployment:
        yield deployment


def bearer(token: str = PREDICT) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_rows_of_records_are_checked_field_by_field(guarded: Deployment) -> None:
    ages = [{"age": 3, "town": "Kista"}, {"age": 4}, {"age": 5, "town": None}]
    assert post(guarded, "/predict", ages, headers=bearer()).json() == [3.05, 4.0, 5.0]
    wrong = [{"age": 3}, {"age": "x", "twon": "Kista"}, {"town": "Kista"}, 7]
    answer = post(guarded, "/predict", wrong, headers=bearer())
    assert answer.status_code == 422
    assert answer.json()["mistakes"] == [
        "row 1 has no field 'twon'. Did you mean 'town'?",
        "row 1, field 'age': \"x\" was given; a number (INT32) is needed (expected `int`, got `str`)",
        "row 2, field 'age' is missing; a number (INT32) is needed",
        "row 3 is 7; an object with the fields age, town is needed",
    ]


def test_columns_of_the_open_inference_protocol_become_rows(guarded: Deployment) -> None:
    age = {"name": "age", "shape": [2, 1], "datatype": "INT32", "data": [[3], [4]]}
    town = {"name": "town", "shape": [2], "datatype": "BYTES", "data": ["Kista", None]}
    answer = post(guarded, "/v2/models/score/infer", {"inputs": [age, town]}, headers=bearer())
    assert answer.json()["outputs"] == [{"name": "score", "shape": [2], "datatype": "FP64", "data": [3.05, 4.0]}]


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({}, 401, "no-token"),
        (bearer("wrong"), 401, "wrong-token"),
        ({"Authorization": f"Basic {PREDICT}"}, 401, "no-token"),
        (bearer() | {"Host": "evil.example"}, 421, "wrong-host"),
        (bearer() | {"Origin": "https://evil.example"}, 403, "wrong-origin"),
        (bearer() | {"Sec-Fetch-Site": "cross-site"}, 403, "wrong-origin"),
        (bearer() | {"X-Deadline-S": "soon"}, 400, "wrong-deadline"),
        (bearer() | {"Content-Length": "3000"}, 413, "body-too-long"),
    ],
)
def test_what_may_not_be_asked_is_refused_before_the_body_is_read(
    guarded: Deployment, headers: dict[str, str], status: int, kind: str
) -> None:
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=20) as connection:
        fields = {"Host": f"127.0.0.1:{guarded.port}", "Content-Length": "1000"} | headers
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        connection.sendall(f"POST /predict HTTP/1.1\r\n{head}\r\n".encode())
        answer = connection.recv(1 << 16)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert f'"kind":"{kind}"'.encode() in answer
    assert PREDICT.encode() not in answer


def test_requests_that_come_at_once_on_a_connection_are_answered_in_their_order(guarded: Deployment) -> None:
    def request(age: int) -> bytes:
        body = msgspec.json.encode({"age": age})
        head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {PREDICT}\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    post(guarded, "/predict", {"age": 1}, headers=bearer())  # known from now on
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=20) as connection:
        connection.sendall(b"".join(request(age) for age in range(1, 5)))
        answers = b""
        while answers.count(b"HTTP/1.1 200") < 4 or not answers.endswith(b"4.0"):
            answers += connection.recv(1 << 16)
    assert re.findall(rb"\r\n\r\n(\d\.\d)", answers) == [b"1.0", b"2.0", b"3.0", b"4.0"]


def test_a_caller_that_leaves_before_the_answer_harms_no_other(guarded: Deployment) -> None:
    body = msgspec.json.encode({"age": 3})
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", guarded.port), timeout=20) as connection:
            head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {PREDICT}\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert post(guarded, "/predict", {"age": 3}, headers=bearer()).json() == 3.0


def test_a_body_that_does_not_say_how_long_it_is_is_counted(guarded: Deployment) -> None:
    def body() -> Iterator[bytes]:
        for _ in range(100):
            yield b"[" * 100

    answer = httpx.post(f"{guarded.url}/predict", content=body(), headers=bearer())
    assert (answer.status_code, answer.json()["kind"]) == (413, "body-too-long")


def test_tokens_open_what_they_are_for(guarded: Deployment) -> None:
    answer = post(guarded, "/admin/roll", {"to": "score:2"}, headers=bearer())
    assert (answer.status_code, answer.json()["kind"]) == (403, "wrong-scope")
    assert httpx.get(f"{guarded.url}/metrics").status_code == 401
    assert httpx.get(f"{guarded.url}/healthz").status_code == 200
    assert httpx.get(f"{guarded.url}/").status_code == 200


def test_administrators_reach_the_supervisor(guarded: Deployment) -> None:
    answers: list[httpx.Response] = []

    def ask() -> None:
        answers.append(post(guarded, "/admin/roll", {"to": "score:2"}, headers=bearer(ADMINISTER)))

    asker = threading.Thread(target=ask)
    asker.start()
    request = guarded.wait_for(AdminRequest)
    guarded.say(AdminAnswer(request.number, 202, {"rolling": True}))
    asker.join()
    assert (request.verb, request.body) == ("roll", {"to": "score:2"})
    assert (answers[0].status_code, answers[0].json()) == (202, {"rolling": True})
    unknown = post(guarded, "/admin/rol", None, headers=bearer(ADMINISTER))
    assert (unknown.status_code, "Did you mean 'roll'" in unknown.json()["error"]) == (404, True)


def test_request_ids_are_kept_or_made(guarded: Deployment) -> None:
    answer = post(guarded, "/predict", {"age": 3}, headers=bearer() | {"X-Request-Id": "mine-7"})
    assert answer.headers["x-request-id"] == "mine-7"
    made = [post(guarded, "/predict", {"age": 3}, headers=bearer()).headers["x-request-id"] for _ in range(2)]
    assert len(set(made)) == 2
    hostile = post(guarded, "/predict", {"age": 3}, headers=bearer() | {"X-Request-Id": "a" * 200})
    assert hostile.headers["x-request-id"] != "a" * 200


def test_requests_are_in_the_log_and_those_that_were_refused_too(guarded: Deployment) -> None:
    bodies = {
        "logged-1": b'{"age": 3, "town": "sesame"}',
        "refused-1": b'{"age": "x", "town": "sesame"}',
        "refused-2": b'{"age": 3, "twon": "sesame"}',
        "refused-3": b'[[3, "sesame"]]',
        "refused-4": b"sesame",
        "refused-5": b'{"stream": 1}',
    }
    for name, body in bodies.items():
        stream = "?stream" if name == "refused-5" else ""
        headers = bearer() | {"X-Request-Id": name}
        httpx.post(f"{guarded.url}/predict{stream}", content=body, headers=headers)
    folder = Path(guarded.folder) / "deployments" / "shop" / "log"
    pause = threading.Event()
    for _ in range(400):
        rows = [row for file in folder.rglob("*.parquet") for row in pq.read_table(file).to_pylist()]
        kept = {row["request_id"]: row for row in rows if row["request_id"] in bodies}
        if len(kept) == len(bodies):
            break
        pause.wait(0.05)
    else:
        pytest.fail(f"only {list(kept)} are in the log")
    assert {name: row["status"] for name, row in kept.items()} == {
        "logged-1": 200,
        **dict.fromkeys(("refused-1", "refused-2", "refused-3", "refused-5"), 422),
        "refused-4": 400,
    }
    assert kept["logged-1"]["input.age"] == 3
    assert kept["refused-1"]["input"] == '{"age":"x"}'
    assert kept["refused-2"]["input.age"] == 3
    assert {row["version"] for row in kept.values()} == {1}
    assert "sesame" not in str(rows), "what is redacted is not kept of a body that was not understood either"


def test_a_document_describes_the_deployment(guarded: Deployment) -> None:
    document = httpx.get(f"{guarded.url}/openapi.json", headers=bearer()).json()
    row = document["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]["anyOf"][0]
    assert row["required"] == ["age"]
    assert document["x-example"] == [{"age": 3, "town": "Kista"}]
    assert document["security"] == [{"token": []}]


def test_the_page_allows_its_own_script_only(guarded: Deployment) -> None:
    answer = httpx.get(f"{guarded.url}/")
    [script] = re.findall(r"<script>(.*?)</script>", answer.text, re.DOTALL)
    expected = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert f"script-src 'sha256-{expected}'" in policy
    assert "default-src 'none'" in policy
    assert "http://" not in answer.text
    assert "https://" not in answer.text


def test_an_answer_comes_piece_by_piece(streaming: Deployment) -> None:
    lines = post(streaming, "/predict?stream", 3)
    assert (lines.headers["content-type"], lines.text) == ("application/x-ndjson", "0\n1\n2\n")
    events = post(streaming, "/predict", 2, headers={"Accept": "text/event-stream"})
    assert events.text == "data: 0\n\ndata: 1\n\nevent: end\ndata: {}\n\n"


def test_a_streamed_answer_that_fails_says_so_in_its_last_piece(streaming: Deployment) -> None:
    *pieces, last = post(streaming, "/predict?stream", 9).text.splitlines()
    assert pieces == [str(number) for number in range(7)]
    assert "seven is too much" in msgspec.json.decode(last)["error"]
    whole = post(streaming, "/predict?stream", [1, 2])
    assert (whole.status_code, whole.json()["kind"]) == (422, "too-many-rows")


def test_a_caller_that_goes_away_frees_the_replica() -> None:
    with serving("endless") as deployment:
        with httpx.stream("POST", f"{deployment.url}/predict?stream", content=b"1", timeout=20) as answer:
            assert next(answer.iter_lines()) == "0"
        assert post(deployment, "/predict", 5).json() == 5


def test_a_client_that_asks_too_often_is_told_when_to_come_back() -> None:
    with serving("double", limits=Limits(requests_per_s=0.01)) as deployment:
        first, second = post(deployment, "/predict", 1), post(deployment, "/predict", 1)
        assert (first.status_code, second.status_code, second.json()["kind"]) == (200, 429, "too-often")
        assert 0 < int(second.headers["retry-after"]) <= 100


def test_a_full_queue_refuses_and_deadlines_are_kept(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    deployment = Deployment("gated", limits=Limits(batch=1, queue=4))
    try:
        deployment.start_front()
        deployment.start_replica(1, GATE=str(gate))
        answers: list[Any] = []

        def ask(deadline_s: str) -> None:
            answers.append(post(deployment, "/predict", {"row": 1}, headers={"X-Deadline-S": deadline_s}))

        askers = [threading.Thread(target=ask, args=(seconds,)) for seconds in ("0.2", "20", "20", "20")]
        for asker in askers:
            asker.start()
        deployment.wait_for(Load, lambda load: load.waiting >= 2)
        refused = post(deployment, "/predict", [{"row": 1}] * 4)
        assert (refused.status_code, refused.json()["kind"], refused.headers["retry-after"]) == (429, "queue-full", "1")
        while not any(answer.status_code == 504 for answer in answers):
            askers[0].join(0.05)
        gate.touch()
        for asker in askers:
            asker.join()
        assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 504]
    finally:
        deployment.close()
