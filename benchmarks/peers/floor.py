"""The floor: two bare processes on pipes with an append-only journal, standard library only.

What is attainable at all in Python on this machine, not a product: no isolation, no authentication, no
retries, no optimizer worth the name. Reports are fire-and-forget, a stop is pushed down the pipe.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from rig.answers import answer, append, folder, mark, memory_mb, numbers

Message = dict[str, Any]
Handler = Callable[["Worker", Message], Message | None]


class Worker:
    """A forked process that runs trials, and the driver's ends of its two pipes."""

    def __init__(self, train: Callable[[int, Message], None]) -> None:
        down_read, self.down = os.pipe()
        self.up, up_write = os.pipe()
        fcntl.fcntl(self.up, fcntl.F_SETPIPE_SZ, 1 << 20)
        self.rest = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.down)
            os.close(self.up)
            try:
                _work(down_read, up_write, train)
            finally:
                os._exit(0)
        os.close(down_read)
        os.close(up_write)

    def send(self, message: Message) -> None:
        os.write(self.down, json.dumps(message).encode() + b"\n")

    def receive(self) -> list[Message] | None:
        """Return what has arrived, `None` at the end of the pipe."""
        chunk = os.read(self.up, 1 << 20)
        if not chunk:
            return None
        *whole, self.rest = (self.rest + chunk).split(b"\n")
        return [json.loads(line) for line in whole]


def _work(down: int, up: int, train: Callable[[int, Message], None]) -> None:
    os.write(up, b'{"ready": true}\n')
    with os.fdopen(down, "rb") as commands:
        for line in commands:
            command = json.loads(line)
            if "stop" in command:
                continue
            train(up, command)


def drive(
    count: int, train: Callable[[int, Message], None], *, fsync: bool, on_report: Handler | None = None
) -> list[float]:
    """Run `count` random trials on two workers; return the times of the first start and of the last end."""
    journal = os.open(os.path.join(folder(), "journal"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    rng = random.Random(0)
    workers = {worker.up: worker for worker in (Worker(train), Worker(train))}
    poller = select.poll()
    for descriptor in workers:
        poller.register(descriptor, select.POLLIN | select.POLLHUP)
    started = ended = 0
    times = [0.0, 0.0]
    while ended < count and workers:
        facts: list[Message] = []
        replies: list[tuple[Worker, Message]] = []
        for descriptor, _ in poller.poll():
            worker = workers[descriptor]
            messages = worker.receive()
            if messages is None:
                append("lost", repr(time.time()))
                poller.unregister(descriptor)
                del workers[descriptor]
                continue
            for message in messages:
                now_s = time.time()
                if "step" in message:
                    facts.append({"fact": "reported", "at": now_s, **message})
                    if on_report is not None and (reply := on_report(worker, message)) is not None:
                        replies.append((worker, reply))
                    continue
                if "value" in message:
                    facts.append({"fact": "ended", "at": now_s, **message})
                    ended += 1
                    times[1] = now_s
                if started < count:
                    command = {"trial": started, "x": rng.random()}
                    facts.append({"fact": "suggested", "at": now_s, **command})
                    replies.append((worker, command))
                    times[0] = times[0] or now_s
                    started += 1
        os.write(journal, b"".join(json.dumps(fact).encode() + b"\n" for fact in facts))
        if fsync and facts:
            os.fsync(journal)
        for worker, reply in replies:
            worker.send(reply)
    # The second worker holds a copy of the first one's pipe: all are closed before any is waited for.
    for worker in workers.values():
        os.close(worker.down)
    for worker in workers.values():
        os.waitpid(worker.pid, 0)
    os.close(journal)
    return times


def _no_op(up: int, command: Message) -> None:
    os.write(up, json.dumps({"trial": command["trial"], "value": command["x"]}).encode() + b"\n")


def throughput(count: int, durability: str) -> None:
    called = time.time()
    first, last = drive(count, _no_op, fsync=durability == "power")
    answer(trials=count, seconds=last - first, call_s=time.time() - called, **memory_mb())


def first() -> None:
    def train(up: int, command: Message) -> None:
        mark("first")
        _no_op(up, command)

    drive(1, train, fsync=True)
    answer()


def report(count: int) -> None:
    def train(up: int, command: Message) -> None:
        began, cpu_began = time.perf_counter(), time.thread_time()
        for step in range(count):
            os.write(up, json.dumps({"step": step, "loss": 0.5}).encode() + b"\n")
        append("cpu_seconds", repr(time.thread_time() - cpu_began))
        append("seconds", repr(time.perf_counter() - began))
        _no_op(up, command)

    drive(1, train, fsync=False)
    with open(os.path.join(folder(), "journal"), encoding="utf-8") as file:
        kept = sum('"reported"' in line for line in file)
    answer(
        us=numbers("seconds")[0] / count * 1e6, cpu_us=numbers("cpu_seconds")[0] / count * 1e6, sent=count, kept=kept
    )


def stop(count: int) -> None:
    down_read, down = os.pipe()
    up, up_write = os.pipe()
    if (pid := os.fork()) == 0:
        for _ in range(count):
            append("reported", repr(time.time()))
            os.write(up_write, b"report")
            os.read(down_read, 1)
            append("seen", repr(time.time()))
        os._exit(0)
    for _ in range(count):
        os.read(up, 1 << 16)
        append("decided", repr(time.time()))
        os.write(down, b"s")
    os.waitpid(pid, 0)
    reported, decided, seen = (numbers(name) for name in ("reported", "decided", "seen"))
    answer(
        ms=[(end - start) * 1e3 for start, end in zip(decided, seen, strict=True)],
        since_report_ms=[(end - start) * 1e3 for start, end in zip(reported, seen, strict=True)],
    )


def lost(count: int) -> None:
    delays = []
    for _ in range(count):
        worker = Worker(lambda _up, _command: time.sleep(60))
        worker.receive()
        worker.send({"trial": 0})
        time.sleep(0.02)
        killed = time.time()
        os.kill(worker.pid, signal.SIGKILL)
        assert worker.receive() is None
        delays.append((time.time() - killed) * 1e3)
        os.waitpid(worker.pid, 0)
    answer(ms=delays)


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    if task == "throughput":
        throughput(int(arguments[0]), arguments[1])
    elif task == "first":
        first()
    elif task == "report":
        report(int(arguments[0]))
    elif task == "stop":
        stop(int(arguments[0]))
    elif task == "lost":
        lost(int(arguments[0]))
    else:
        sys.exit(f"unknown task {task!r}")
