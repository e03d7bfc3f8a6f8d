"""The host of replicas: imports what the model needs, computes nothing, and forks replicas in milliseconds.

It has a single thread. Replicas ask the kernel to be killed with it, and what they leave behind it ends. It goes on
for a while when its supervisor is lost, so that the next one finds the replicas serving; after that it ends, and they
with it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Set
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike.core.running.ending import process_ending
from cargobike.serving.replica.process import run_replica
from cargobike.serving.supervising.hosting import End, EndHost, Fork, Gone, HostConfig, HostIs, ToHost, Using
from cargobike.serving.wire import Frames, ReplicaConfig, Said, framed
from cargobike.workers.processes import adopt_orphans, die_with_parent, end_descendants, volunteer
from cargobike.workers.runner import is_library, open_stream

_TERM_S: Final = 5.0
_LOOK_S: Final = 1.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LONGEST_LOG: Final = 32 << 20
_LONGEST_ERROR: Final = 16_000
_LONGEST_IMPORTS: Final = 1 << 20
_OURS: Final = str(Path(__file__).resolve().parents[2]) + os.sep


class _Replica:
    """A replica that was forked."""

    def __init__(self, number: int, version: int, pid: int, words_fd: int, imports_fd: int) -> None:
        self.number = number
        self.version = version
        self.pid = pid
        self.words_fd = words_fd
        self.imports_fd = imports_fd
        self.kill_at: float | None = None


class Host:
    """The state of one host."""

    def __init__(self, config: HostConfig) -> None:
        self._config = config
        self._replicas: dict[int, _Replica] = {}
        self._failed: dict[str, str] = {}
        self._supervisor: socket.socket | None = None
        self._frames = Frames()
        self._lost_at = time.monotonic()
        self._looked_at = 0.0
        self._decoder = msgspec.msgpack.Decoder(ToHost)
        self._wake_fd, self._wake_end = os.pipe()
        os.set_blocking(self._wake_end, False)
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def serve(self) -> None:
        """Fork replicas on demand until told to end, or until no supervisor was there for the grace time."""
        adopt_orphans()
        for name, value in self._config.environment.items():
            os.environ[name] = value
        sys.path += [path for path in self._config.paths if path not in sys.path]
        self._import()
        # Bound under another name first: a supervisor that finds it must be able to connect.
        aside = f"{self._config.socket}.{os.getpid()}"
        self._server.bind(aside)
        self._server.listen(4)
        os.replace(aside, self._config.socket)
        while True:
            if self._supervisor is None and time.monotonic() - self._lost_at >= self._config.grace_s:
                return
            if not self._turn():
                return

    def close(self) -> None:
        """End all replicas; those that do not want to are killed."""
        for replica in self._replicas.values():
            _signal(replica.pid, signal.SIGTERM)
        give_up_at = time.monotonic() + 1.0
        while self._replicas and time.monotonic() < give_up_at:
            self._reap()
            time.sleep(0.005)
        with contextlib.suppress(OSError):
            os.unlink(self._config.socket)
        end_descendants()

    def _import(self) -> None:
        for name in self._config.libraries:
            try:
                importlib.import_module(name)
            except Exception as error:  # noqa: BLE001 - the replica that needs it says so
                self._failed[name] = f"{type(error).__name__}: {error}"
        # A collection in a child would touch, and so copy, every page that it shares with us.
        gc.freeze()

    def _turn(self) -> bool:
        readers: list[Any] = [
            self._server,
            self._wake_fd,
            *([self._supervisor] if self._supervisor is not None else []),
        ]
        ready, _, _ = select.select(readers, [], [], 0.25 if self._replicas else 1.0)
        if self._wake_fd in ready:
            os.read(self._wake_fd, 4096)
        self._reap()
        self._end_stubborn()
        if self._server in ready:
            self._greet(self._server.accept()[0])
        elif self._supervisor in ready and not self._obey():
            return False
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_S and self._replicas:
            self._looked_at = now
            self._say(Using({replica.number: _memory_of(replica.pid) for replica in self._replicas.values()}))
            self._cut_logs()
        return True

    def _greet(self, connection: socket.socket) -> None:
        if self._supervisor is not None:
            self._supervisor.close()
        connection.settimeout(5.0)
        self._supervisor, self._frames = connection, Frames()
        versions = {replica.number: replica.version for replica in self._replicas.values()}
        greeting = framed(HostIs(os.getpid(), self._config.libraries, self._failed, versions))
        try:
            socket.send_fds(connection, [greeting], [self._config.listener] if self._config.listener >= 0 else [])
        except OSError:
            self._lose()

    def _obey(self) -> bool:
        """Carry out what the supervisor said; return whether to go on."""
        assert self._supervisor is not None
        try:
            data = self._supervisor.recv(1 << 18)
        except OSError:
            data = b""
        if not data:
            self._lose()
            return True
        for body in self._frames.feed(data):
            order = self._decoder.decode(body)
            if isinstance(order, EndHost):
                return False
            if isinstance(order, Fork):
                self._fork(order)
            else:
                self._end(order)
        return True

    def _lose(self) -> None:
        if self._supervisor is not None:
            self._supervisor.close()
        self._supervisor, self._lost_at = None, time.monotonic()

    def _say(self, news: Said) -> None:
        if self._supervisor is not None:
            try:
                self._supervisor.sendall(framed(news))
            except OSError:
                self._lose()

    def _fork(self, order: Fork) -> None:
        config = msgspec.msgpack.decode(order.config, type=ReplicaConfig)
        self._learn_imports()
        words_fd = os.memfd_create("cargobike-replica-error")
        imports_fd = os.memfd_create("cargobike-replica-imports")
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                self._become_replica(config, words_fd, imports_fd, me)
            except BaseException:  # noqa: BLE001 - no exception may leave a forked child, only its exit status
                traceback.print_exc()
            finally:
                os._exit(1)
        self._replicas[order.replica] = _Replica(order.replica, config.version, pid, words_fd, imports_fd)

    def _learn_imports(self) -> None:
        """Import what replicas have needed, so that the next one finds it there."""
        for replica in self._replicas.values():
            names = os.pread(replica.imports_fd, _LONGEST_IMPORTS, 0).decode().split()
            os.ftruncate(replica.imports_fd, 0)
            for name in names:
                if name not in sys.modules:
                    with contextlib.suppress(Exception):  # the replica that needs it says so
                        importlib.import_module(name)
            if names:
                gc.freeze()

    def _become_replica(self, config: ReplicaConfig, words_fd: int, imports_fd: int, parent: int) -> None:
        os.setpgid(0, 0)
        die_with_parent(parent)
        volunteer()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._server.close()
        if self._supervisor is not None:
            self._supervisor.close()
        others = [fd for replica in self._replicas.values() for fd in (replica.words_fd, replica.imports_fd)]
        for fd in (self._wake_fd, self._wake_end, self._config.listener, *others):
            if fd >= 0:
                os.close(fd)
        _redirect(Path(self._config.logs) / f"replica-{config.replica}.log")
        try:
            before = set(sys.modules)
            run_replica(config, lambda: _tell_imports(imports_fd, before))
        except BaseException as error:
            os.write(words_fd, _words_of(error).encode(errors="replace")[-_LONGEST_ERROR:])
            raise
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)

    def _end(self, order: End) -> None:
        replica = self._replicas.get(order.replica)
        if replica is None:
            return
        _signal(replica.pid, signal.SIGKILL if order.kill else signal.SIGTERM)
        replica.kill_at = time.monotonic() + _TERM_S

    def _end_stubborn(self) -> None:
        now = time.monotonic()
        for replica in self._replicas.values():
            if replica.kill_at is not None and now >= replica.kill_at:
                _signal(replica.pid, signal.SIGKILL)

    def _reap(self) -> None:
        ended = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            ended.append((pid, os.waitstatus_to_exitcode(status)))
        numbers = {replica.pid: replica.number for replica in self._replicas.values()}
        for pid, code in ended:
            if pid in numbers:
                replica = self._replicas.pop(numbers[pid])
                error = os.pread(replica.words_fd, _LONGEST_ERROR, 0).decode(errors="replace")
                os.close(replica.words_fd)
                os.close(replica.imports_fd)
                self._say(Gone(replica.number, str(process_ending(code)), error))
        if ended:
            # Only replicas should be our children; anything else was left by one that died.
            end_descendants(spare={replica.pid for replica in self._replicas.values()})

    def _cut_logs(self) -> None:
        for replica in self._replicas.values():
            path = Path(self._config.logs) / f"replica-{replica.number}.log"
            with contextlib.suppress(OSError):
                if path.stat().st_size > _LONGEST_LOG:
                    os.truncate(path, 0)


def _words_of(error: BaseException) -> str:
    """Return the traceback of user code, without frames of ours, and what it means in the last line."""
    cause = error.__cause__ or error
    text = traceback.TracebackException.from_exception(cause)
    text.stack = traceback.StackSummary.from_list(
        [frame for frame in text.stack if not frame.filename.startswith(_OURS)]
    )
    shown = "".join(text.format(chain=False)) if text.stack else ""
    last = " ".join(str(error).split()) if error.__cause__ is not None else f"{type(error).__name__}: {error}"
    return f"{shown}{last}"


def _tell_imports(fd: int, before: Set[str]) -> None:
    """Name the installed modules that loading the model has imported; the user's own may compute at import."""
    names = " ".join(name for name in list(sys.modules) if name not in before and is_library(name))
    os.write(fd, names.encode()[:_LONGEST_IMPORTS])


def _signal(pid: int, number: signal.Signals) -> None:
    """Send a signal to a replica and to what it has started in its group."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:  # it was forked just now, and has no group yet
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    except PermissionError:
        return


def _memory_of(pid: int) -> int:
    """Return how much memory a process uses that it does not share with its host; 0 if it has ended."""
    try:
        words = Path(f"/proc/{pid}/statm").read_text().split()
        return max(0, int(words[1])) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _redirect(path: Path) -> None:
    """Send output to a file, line by line, and take input from nowhere."""
    log_fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    os.close(null)
    os.close(log_fd)
    sys.stdout, sys.stderr = open_stream(1), open_stream(2)


def main() -> None:
    """Run a host: its config comes on standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    config = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=HostConfig)
    if config.listener >= 0:
        os.set_inheritable(config.listener, False)
    host = Host(config)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        host.serve()
    finally:
        host.close()
        os._exit(0)


if __name__ == "__main__":
    main()
