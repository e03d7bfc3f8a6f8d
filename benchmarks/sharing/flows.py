"""The programs inside the namespaces: receivers that count, plain TCP, and ours under the pacer.

flows.py receive ADDRESS PORT         prints the bytes of each 100 ms, with the moment, until its connections have ended
flows.py send ADDRESS PORT SECONDS CC [CONNECTIONS]
flows.py paced ADDRESS PORT SECONDS CC [CONNECTIONS]
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time

STEP_S = 0.1


def receive(address: str, port: int) -> None:
    """Count what arrives, and print it as it comes."""
    counts: dict[int, int] = {}
    lock = threading.Lock()

    def count(connection: socket.socket) -> None:
        with connection, contextlib.suppress(ConnectionError):
            buffer = bytearray(1 << 18)
            while read := connection.recv_into(buffer):
                with lock:
                    moment = int(time.monotonic() / STEP_S)
                    counts[moment] = counts.get(moment, 0) + read

    with socket.create_server((address, port)) as server:
        print("ready", flush=True)

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                threading.Thread(target=count, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        sys.stdin.read()  # until the caller closes it
    with lock:
        print(" ".join(f"{moment}:{number}" for moment, number in sorted(counts.items())), flush=True)


def send(address: str, port: int, seconds: float, control: str, connections: int, *, paced: bool) -> None:
    """Send as fast as the socket takes it."""
    from cargobike.sharing.governor import paths
    from cargobike.sharing.governor.pacing import Pacer

    until = time.monotonic() + seconds
    if paced and control != "chosen":
        paths.LONG_PATHS = paths.SHORT_PATHS = (control,)

    def run(pacer: Pacer | None) -> None:
        with socket.create_connection((address, port)) as sock, contextlib.suppress(TimeoutError, ConnectionError):
            handle = None
            if pacer:
                handle = pacer.attach(sock, address)
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
            sock.settimeout(5)
            block = bytes(1 << 16)
            while time.monotonic() < until:
                count = sock.send(block)
                if handle:
                    handle.sent(count)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # leave no queue behind

    with Pacer() as pacer:
        threads = [
            threading.Thread(target=run, args=(pacer if paced else None,), daemon=True) for _ in range(connections)
        ]
        for thread in threads:
            thread.start()
        if paced:
            report(pacer, until)
        for thread in threads:
            thread.join(timeout=seconds + 10)


def report(pacer: object, until: float) -> None:
    """Print what the governor does, ten times a second, for a look behind a bad figure."""
    from cargobike.sharing.governor.pacing import Pacer

    assert isinstance(pacer, Pacer)
    while time.monotonic() < until:
        for status in pacer.status():
            print(
                f"{time.monotonic():.1f} {status.phase:9} rate {(status.rate or 0) * 8e-6:7.2f} "
                f"delivered {status.delivered_rate * 8e-6:7.2f} base {(status.base_delay_s or 0) * 1e3:.2f} ms "
                f"queue {status.queueing_delay_s * 1e3:.2f} ms",
                file=sys.stderr,
            )
        time.sleep(0.1)


if __name__ == "__main__":
    role, address, port, *rest = sys.argv[1:]
    if role == "receive":
        receive(address, int(port))
    else:
        seconds, control, *count = rest
        send(address, int(port), float(seconds), control, int(count[0]) if count else 1, paced=role == "paced")
