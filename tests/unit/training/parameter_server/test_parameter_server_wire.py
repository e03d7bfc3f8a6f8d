"""Handshakes, seals and frames by themselves: bytes in, bytes out."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest

import cargobike.torch
from cargobike.core.errors import (
    AuthenticationError,
    ConnectionLostError,
    FrameError,
    InvalidInputError,
    MissingLibraryError,
)
from cargobike.training.wire import connection
from cargobike.training.wire.channel import MAX_HEADER_BYTES, PIECE_BYTES, Channel, _pieces
from cargobike.training.wire.handshake import (
    ANSWER_BYTES,
    GREETING_BYTES,
    VERDICT_BYTES,
    Seals,
    ServerHandshake,
    WorkerHandshake,
)
from cargobike.training.wire.sealing import (
    BODY,
    HEAD,
    LENGTHS,
    TAG_BYTES,
    TAGS,
    Suite,
    choose,
    make_seal,
)

SECRET = b"s" * 32
ALL = TAGS | Suite.GCM_ENCRYPTED
each_suite = pytest.mark.parametrize("suite", list(Suite), ids=lambda suite: suite.name)


def shake_hands(offered: Suite = ALL, accepted: Suite = ALL) -> tuple[Seals, Seals]:
    server = ServerHandshake(SECRET, offered)
    worker = WorkerHandshake(SECRET, accepted, server.greeting)
    verdict, seals, problem = server.judge(worker.answer)
    assert (len(server.greeting), len(worker.answer), len(verdict)) == (GREETING_BYTES, ANSWER_BYTES, VERDICT_BYTES)
    assert seals is not None
    assert problem == ""
    return worker.conclude(verdict), seals


def sealed(seals: Seals, data: bytes, kind: bytes = BODY) -> memoryview:
    return memoryview(b"".join(seals.sending.seal(kind, data)))


@each_suite
def test_what_one_end_seals_the_other_opens(suite: Suite) -> None:
    worker, server = shake_hands(suite, suite)
    for one, other in ((worker, server), (server, worker)):
        for data in (b"", b"x", os.urandom(1000)):
            packed = sealed(one, data)
            assert len(packed) == len(data) + TAG_BYTES
            if len(data) != 1:  # a single byte is in what is encrypted now and then
                assert (data in bytes(packed)) is (suite is not Suite.GCM_ENCRYPTED or data == b"")
            assert bytes(other.receiving.open(BODY, packed)) == data


@each_suite
def test_every_flipped_bit_is_noticed(suite: Suite) -> None:
    key = os.urandom(32)
    packed = b"".join(make_seal(suite, key).seal(HEAD, b"0123456789"))
    for bit in range(8 * len(packed)):
        changed = bytearray(packed)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FrameError):
            make_seal(suite, key).open(HEAD, memoryview(changed))


@each_suite
def test_pieces_open_once_in_order_in_their_place_and_direction(suite: Suite) -> None:
    worker, server = shake_hands(suite, suite)
    first, second = sealed(worker, b"one"), sealed(worker, b"two")
    with pytest.raises(FrameError):
        shake_hands(suite, suite)[1].receiving.open(BODY, first)  # another connection
    with pytest.raises(FrameError):
        worker.receiving.open(BODY, first)  # back to where it came from
    assert bytes(server.receiving.open(BODY, first)) == b"one"
    with pytest.raises(FrameError):
        server.receiving.open(BODY, first)  # again, in the place of the second
    worker, server = shake_hands(suite, suite)
    first, second = sealed(worker, b"one"), sealed(worker, b"two")
    with pytest.raises(FrameError):
        server.receiving.open(BODY, second)  # the first left out
    worker, server = shake_hands(suite, suite)
    with pytest.raises(FrameError):
        server.receiving.open(LENGTHS, sealed(worker, b"one"))  # as something else


def test_the_cheapest_protection_that_both_accept_is_chosen() -> None:
    assert choose(ALL, ALL) is Suite.GCM_TAGS
    assert choose(ALL, Suite.HMAC_TAGS) is Suite.HMAC_TAGS
    assert choose(ALL, Suite.GCM_ENCRYPTED) is Suite.GCM_ENCRYPTED
    assert choose(TAGS, Suite.GCM_ENCRYPTED) is None
    with pytest.raises(AuthenticationError, match="lacks the package cryptography"):
        shake_hands(Suite.HMAC_TAGS, Suite.GCM_ENCRYPTED)


@pytest.mark.parametrize("position", [*range(16, 18), 48, 49, 80])
def test_a_changed_greeting_fits_no_proof(position: int) -> None:
    server = ServerHandshake(SECRET, Suite.HMAC_TAGS | Suite.GCM_TAGS)
    changed = bytearray(server.greeting)
    changed[position] ^= Suite.GCM_TAGS  # in the suites: only the weaker one is left
    worker = WorkerHandshake(SECRET, ALL, bytes(changed))
    verdict, seals, problem = server.judge(worker.answer)
    assert seals is None
    assert "did not know the secret" in problem
    with pytest.raises(AuthenticationError, match="does not accept our secret"):
        worker.conclude(verdict)


def test_a_worker_gets_no_protection_that_is_not_offered() -> None:
    server = ServerHandshake(SECRET, Suite.GCM_ENCRYPTED)
    for chosen in (Suite.HMAC_TAGS, Suite.GCM_TAGS, ALL, 8, 0):
        worker = WorkerHandshake(SECRET, ALL, server.greeting)
        verdict, seals, problem = server.judge(worker.answer[:16] + bytes([chosen]) + worker.answer[17:])
        assert seals is None
        assert f"wants protection {int(chosen)}, which is not offered" in problem
        with pytest.raises(AuthenticationError, match="refuses the protection"):
            worker.conclude(verdict)


def test_a_public_key_that_gives_nothing_away_is_not_taken() -> None:
    server = ServerHandshake(SECRET, Suite.GCM_ENCRYPTED)
    with pytest.raises(AuthenticationError, match="public key cannot be used"):
        WorkerHandshake(SECRET, ALL, server.greeting[:49] + bytes(32))
    answer = WorkerHandshake(SECRET, ALL, server.greeting).answer
    _, seals, problem = server.judge(answer[:49] + bytes(32) + answer[81:])
    assert seals is None
    assert "public key cannot be used" in problem


@pytest.mark.parametrize("lie", [bytes(33), b"\0" + b"x" * 32, b"\1" + bytes(32), b"\7" + bytes(32)])
def test_a_verdict_without_proof_is_not_believed(lie: bytes) -> None:
    worker = WorkerHandshake(SECRET, ALL, ServerHandshake(SECRET, ALL).greeting)
    with pytest.raises(AuthenticationError):
        worker.conclude(lie)


def test_proofs_of_one_side_are_of_no_use_to_the_other() -> None:
    worker = WorkerHandshake(SECRET, ALL, ServerHandshake(SECRET, ALL).greeting)
    with pytest.raises(AuthenticationError, match="the server does not know"):
        worker.conclude(b"\0" + worker.answer[-32:])


def test_secrets_that_can_be_guessed_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"at least 16 bytes, not 5: make one with secrets\.token_bytes"):
        cargobike.torch.ParameterServer(b"short")


PIECES = [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, 3 * PIECE_BYTES + 7]


@pytest.mark.parametrize("first", PIECES)
def test_a_body_is_cut_in_equal_pieces_wherever_its_parts_end(first: int) -> None:
    for second in PIECES:
        data = os.urandom(first + second)
        pieces = list(_pieces([memoryview(data)[:first], memoryview(b""), memoryview(data)[first:]]))
        assert b"".join(pieces) == data
        assert all(len(piece) == PIECE_BYTES for piece in pieces[:-1])
        assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)


def pair(suite: Suite = Suite.GCM_TAGS) -> tuple[Channel, Channel, socket.socket]:
    ends = socket.socketpair()
    one, other = (Channel(end, seals, "peer") for end, seals in zip(ends, shake_hands(suite, suite), strict=True))
    for channel in (one, other):
        channel.wait_in_kernel(30)
    return one, other, ends[0]


@each_suite
def test_frames_arrive_as_they_were_sent(suite: Suite) -> None:
    one, other, _ = pair(suite)
    data = os.urandom(2 * PIECE_BYTES + 100)
    thread = threading.Thread(target=one.send, args=(b"header", [memoryview(data)[:70], memoryview(data)[70:]]))
    thread.start()
    assert other.receive_header() == (b"header", len(data))
    found = bytearray(len(data))
    for begin, end in [(0, 5), (5, 5), (5, PIECE_BYTES + 9), (PIECE_BYTES + 9, len(data))]:
        other.read_into(memoryview(found)[begin:end])
    thread.join()
    assert found == data
    other.send(b"")
    assert one.receive_header() == (b"", 0)
    with pytest.raises(ConnectionLostError, match="shorter than"):
        one.read_into(memoryview(bytearray(1)))
    one.close()
    with pytest.raises(ConnectionLostError, match="has closed"):
        other.receive_header()
    other.close()


def test_a_body_must_be_read_before_the_next_header_and_headers_are_bounded() -> None:
    one, other, _ = pair()
    one.send(b"first", [memoryview(b"body")])
    one.send(b"second")
    other.receive_header()
    with pytest.raises(ConnectionLostError, match="was not read"):
        other.receive_header()
    other.read_into(memoryview(bytearray(3)))
    with pytest.raises(ConnectionLostError, match="was not read"):
        other.receive_header()
    other.read_into(memoryview(bytearray(1)))
    assert other.receive_header() == (b"second", 0)
    thread = threading.Thread(target=one.send, args=[bytes(MAX_HEADER_BYTES)])
    thread.start()
    assert len(other.receive_header()[0]) == MAX_HEADER_BYTES
    thread.join()

    def send_too_much() -> None:
        with pytest.raises(ConnectionError):
            one.send(bytes(MAX_HEADER_BYTES + 1))

    thread = threading.Thread(target=send_too_much)
    thread.start()
    with pytest.raises(ConnectionLostError, match="not one of ours"):
        other.receive_header()
    other.close()
    thread.join()
    one.close()


def test_nothing_of_a_spoilt_piece_reaches_its_target() -> None:
    one, other, wire = pair(Suite.HMAC_TAGS)
    one.send(b"header", [memoryview(b"a" * 100)])
    spoilt = bytearray(other._socket.recv(1000))
    spoilt[-TAG_BYTES - 1] ^= 1
    wire.sendall(spoilt)
    other.receive_header()
    target = bytearray(b"-" * 100)
    with pytest.raises(FrameError):
        other.read_into(memoryview(target))
    assert target == b"-" * 100
    one.close()
    other.close()


def test_a_forked_child_does_not_speak_with_its_parents_keys() -> None:
    one, other, _ = pair()
    child = os.fork()
    if child == 0:
        try:
            one.send(b"from the child")
        except ConnectionLostError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    one.close()
    other.close()


WITHOUT_CRYPTOGRAPHY = """
import sys
sys.modules["cryptography"] = None
import torch, cargobike.torch
from cargobike.errors import MissingLibraryError
model = torch.nn.Linear(3, 1)
with cargobike.torch.parameter_client(model) as client:
    model(torch.ones(2, 3)).sum().backward()
    assert client.step()
for go in (
    lambda: cargobike.torch.ParameterServer(b"s" * 32, host="0.0.0.0"),
    lambda: cargobike.torch.parameter_client(model, servers=[sys.argv[1]], secret=b"s" * 32, timeout_s=30),
):
    try:
        go()
    except MissingLibraryError as error:
        print(error)
"""


def test_without_the_library_this_machine_is_served_and_others_are_refused_in_words() -> None:
    with socket.create_server(("0.0.0.0", 0)) as elsewhere:
        port = elsewhere.getsockname()[1]
        command = [sys.executable, "-c", WITHOUT_CRYPTOGRAPHY, f"{_own_address()}:{port}"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    refusals = found.stdout.splitlines()
    assert len(refusals) == (1 if _own_address().startswith("127.") else 2)
    for refusal in refusals:
        assert "must be encrypted, and the package cryptography is not installed" in refusal
        assert "pip install 'cargobike[torch]'" in refusal


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def test_only_what_stays_on_this_machine_is_not_encrypted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as near:
        assert connection.suites_for(near) == ALL
    one, other = socket.socketpair()
    with one, other:
        assert connection.suites_for(one) == TAGS
    assert all(connection.is_loopback(host) for host in ("127.0.0.1", "127.8.9.10", "::1"))
    assert not any(connection.is_loopback(host) for host in ("10.0.0.1", "0.0.0.0", "fd00::2"))
    with socket.create_server(("0.0.0.0", 0)) as listener:
        own = (_own_address(), listener.getsockname()[1])
        with socket.create_connection(own) as far:
            assert connection.suites_for(far) == (ALL if own[0] == "127.0.0.1" else Suite.GCM_ENCRYPTED)


def test_a_missing_library_closes_what_was_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ENCRYPTED", Suite(0))
    with socket.create_server(("0.0.0.0", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(MissingLibraryError, match=r"server at 0\.0\.0\.0 is reached over a network"):
        connection.listen("0.0.0.0", port)
    with socket.create_server(("0.0.0.0", port)):
        pass
