"""A real broker that speaks Kafka's protocol: SeaweedFS' gateway, over a server that tests share."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import time
from pathlib import Path

from support.kept import Kept, free_ports
from support.seaweed_server import SeaweedServer, program

_PORT = 9093
"""It tells clients this port whatever it is given, so each has an address of its own instead."""


class KafkaGateway:
    """Runs until `close`.

    Args:
        seaweed: The server that holds the messages.
        folder: Where its output goes.
    """

    def __init__(self, seaweed: SeaweedServer, folder: Path) -> None:
        self._seaweed = seaweed
        self._folder = folder
        self._host = f"127.{random.randint(2, 250)}.{random.randint(2, 250)}.{random.randint(2, 250)}"
        (self._broker_port,) = free_ports(1)
        self.servers = f"{self._host}:{_PORT}"
        self._broker = Kept(
            [
                program(),
                "mq.broker",
                "-ip=127.0.0.1",
                f"-master={seaweed.master}",
                f"-port={self._broker_port}",
                "-logFlushInterval=1",
            ],
            self._folder / "broker.log",
        )
        self._broker.wait_until(lambda: _listens("127.0.0.1", self._broker_port))
        self._gateway = Kept(
            [
                program(),
                "mq.kafka.gateway",
                f"-ip={self._host}",
                f"-ip.bind={self._host}",
                f"-port={_PORT}",
                f"-master={seaweed.master}",
                "-schema-registry-url=http://127.0.0.1:1",
            ],
            self._folder / "gateway.log",
        )
        self._gateway.wait_until(lambda: _listens(self._host, _PORT))

    def make_topic(self, topic: str, partitions: int) -> None:
        """Make a topic; the protocol's own request for that is not understood."""
        command = f"mq.topic.configure -namespace kafka -topic {topic} -partitionCount {partitions}\n"
        for _ in range(20):  # the broker is known to the master a moment after it listens
            done = subprocess.run(
                [program(), "shell", "-master", self._seaweed.master],
                input=command,
                text=True,
                check=False,
                capture_output=True,
                timeout=60,
            )
            if "error" not in done.stdout + done.stderr:
                return
            time.sleep(0.5)
        raise AssertionError(done.stdout + done.stderr)

    def pause(self) -> None:
        """Stop answering; after a restart, this server itself does not find messages in the middle of a topic."""
        self._gateway.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Answer again."""
        self._gateway.signal(signal.SIGCONT)

    def close(self) -> None:
        self._gateway.end()
        self._broker.end()


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True
