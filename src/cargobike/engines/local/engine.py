"""The local engine: workers are processes on this machine. No server, no Java, no port but the driver's own."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator

import msgspec

from cargobike.core import settings
from cargobike.core.records import Resources
from cargobike.core.running.descriptors import from_reserve
from cargobike.core.running.ending import Ending, EndKind
from cargobike.core.running.forks import abandon_in_copies
from cargobike.core.running.hosting import Begin, Fork, Forked, Gone, HostOrder, Warm, decode_news
from cargobike.core.values.kinds import read_several
from cargobike.engines.capabilities import HandsDown, WarmsUp
from cargobike.engines.engine import Engine, WorkerHandle, WorkerSpec
from cargobike.engines.local.boot import Boot
from cargobike.engines.local.gpus import GpuPool, detect_gpus
from cargobike.engines.local.leftovers import end_marked, end_orphans

log = logging.getLogger(__name__)

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
)

_FORK_S = 20.0


class LocalEngine(Engine, WarmsUp, HandsDown):
    """Starts workers as processes below one host process, which imports the function's libraries once for all.

    Args:
        cores: How many cores to share among the workers; those this process may use by default.
        gpus: Names of the devices to hand out; those of the machine by default.
        boot: The host process, if it has been started already.
    """

    name = "local"

    def __init__(
        self, *, cores: int | None = None, gpus: tuple[str, ...] | None = None, boot: Boot | None = None
    ) -> None:
        self._boot = boot
        self._cores = cores or len(os.sched_getaffinity(0))
        self._gpus = GpuPool(detect_gpus() if gpus is None else read_several("gpus", gpus, "('0', '1')"))
        self._host: _HostProcess | None = None
        self._dead_hosts: list[_HostProcess] = []
        self._handles: dict[str, LocalHandle] = {}
        self._is_over = threading.Event()
        self._ends_orphans: threading.Thread | None = None

    def capacity(self, resources: Resources) -> int:
        """Return how many workers fit: by GPUs where they want some, else by cores."""
        share = self._share(resources)
        if share:
            return self._gpus.capacity(share)
        return max(1, self._cores // (resources.cpus or 1))

    def _share(self, resources: Resources) -> float:
        if resources.gpus is not None:
            return resources.gpus
        return 1.0 if self._gpus.devices else 0.0

    def warm_up(self, module: str, resources: Resources, peers: int) -> None:
        """Start the host process, which takes as long to boot as the rest of the driver takes to load."""
        boot = self._boot or Boot(module)
        if resources.cpus is not None and resources.cpus > self._cores:
            log.warning("cpus=%d for each worker are more than this machine's %d.", resources.cpus, self._cores)
        try:
            self._host = _HostProcess(boot, resources.cpus or max(1, self._cores // peers))
        except OSError:
            if boot is not self._boot:
                boot.close()
            raise
        self._boot = None
        if self._ends_orphans is None:  # what was left may hold memory or a GPU that the workers need
            self._ends_orphans = threading.Thread(target=end_orphans, args=(self._is_over.wait,), daemon=True)
            self._ends_orphans.start()

    def start_worker(self, spec: WorkerSpec) -> LocalHandle:
        """Fork a worker from the host, which is started first if there is none."""
        if self._host is not None and self._host.process.poll() is not None:
            self._hear()
            self._dead_hosts.append(self._host)  # its agents go on without it, until they are told to end
            self.end_leftovers(self._host)
            self._host = None
        if self._host is None:
            self.warm_up(spec.module, spec.resources, spec.peers)
        host = self._host
        assert host is not None
        host.begin(spec)
        share = self._share(spec.resources)
        self._hear()
        with _memory_file(spec.config) as config_fd:
            devices = self._gpus.take(spec.name, share) if share else ()
            handle = LocalHandle(spec.name, self, host, devices)
            self._handles[spec.name] = handle
            handed = [config_fd] if spec.descriptor < 0 else [config_fd, spec.descriptor]
            host.order(Fork(spec.name, devices), handed)
        return handle

    def shutdown(self, timeout_s: float = 5.0) -> None:
        """End the host, which takes everything below it along."""
        hosts = [*self._dead_hosts, *([self._host] if self._host is not None else [])]
        self._hear()
        self._host = None
        self._dead_hosts.clear()
        for host in hosts:
            host.dismiss()
        for host in hosts:
            host.close(timeout_s)
        for handle in self._handles.values():
            handle.wait(timeout_s)
            handle.kill()
            handle.gone = handle.gone or Ending(EndKind.ENDED, "was ended with its engine")
            self._gpus.give_back(handle.name)
            handle.close()
        self._handles.clear()
        for host in hosts:
            if host.process.poll() != 0:
                self.end_leftovers(host)
        self._is_over.set()
        if self._ends_orphans is not None:
            self._ends_orphans.join(timeout_s)

    def _hear(self) -> None:
        """Take in what the host has to say."""
        if self._host is None:
            return
        for news in self._host.news():
            if isinstance(news, Forked) and news.name in self._handles:
                self._handles[news.name].born(news.pid)
            elif isinstance(news, Gone) and news.name in self._handles:
                self._handles[news.name].gone = news.ending
            elif isinstance(news, Warm):
                self._host.warm_at = time.monotonic()

    def end_leftovers(self, host: _HostProcess) -> None:
        """End what a host that was killed, and agents that were killed with it, have left behind."""
        living = {handle.pid for handle in self._handles.values() if handle.pid is not None and not handle.has_exited()}
        end_marked(host.process.mark, spare=living)

    def forget(self, handle: LocalHandle) -> None:
        """Take back the devices of a worker that is gone."""
        if self._handles.pop(handle.name, None) is not None:
            self._gpus.give_back(handle.name)
            handle.close()


class LocalHandle(WorkerHandle):
    """A worker process on this machine."""

    def __init__(self, name: str, engine: LocalEngine, host: _HostProcess, gpus: tuple[str, ...]) -> None:
        self.name = name
        self.gpus = gpus
        self.gone: Ending | None = None
        self.pid: int | None = None
        self._pidfd = -1
        self._has_vanished = False
        self._engine = engine
        self._host = host
        self._kill_when_born = False
        self._ordered_at = time.monotonic()

    def born(self, pid: int) -> None:
        """Remember the agent's process, by a descriptor that no reuse of its number can redirect."""
        self.pid = pid
        self._hold()
        if self._kill_when_born:
            self.kill()

    def _hold(self) -> bool:
        """Open the descriptor of the agent's process; returns whether there is one, later if none is free now."""
        if self._pidfd < 0 and self.pid is not None and not self._has_vanished:
            try:
                self._pidfd = from_reserve(functools.partial(os.pidfd_open, self.pid))
            except ProcessLookupError:
                self._has_vanished = True
            except OSError as error:
                log.warning("worker %s cannot be watched for now: %s", self.name, error)
        return self._pidfd >= 0

    def poll(self) -> Ending | None:
        """Return how the worker ended, or `None`."""
        if self.gone is None:
            self._engine._hear()
        if self.gone is None:
            if self.pid is None and self._host.warm_at is not None:
                self._host.end_if_stuck(max(self._ordered_at, self._host.warm_at))
            host_ended = self._host.process.poll()
            if host_ended is not None and (self.pid is None or self.has_exited()):
                how = f"ended with its host process (exit code {host_ended}): {self._host.process.last_words()}"
                self.gone = Ending(EndKind.PLACE_LOST, how)
                self._engine.end_leftovers(self._host)
        if self.gone is not None:
            self._engine.forget(self)
        return self.gone

    def has_exited(self) -> bool:
        """Tell whether the agent's process has ended."""
        return self.wait(0.0)

    def wait(self, timeout_s: float) -> bool:
        """Wait for an agent that ends by itself, taking along what is below it; tell whether it has."""
        if not self._hold():
            return self.pid is None or self._has_vanished
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return bool(poller.poll(timeout_s * 1000))

    def kill(self) -> None:
        """Kill the agent; what is below it dies with it."""
        if self.pid is None:
            self._kill_when_born = True
            self._host.end_if_stuck(self._ordered_at)
        elif self._hold():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """Give back the descriptor."""
        self._has_vanished = True
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


class _HostProcess:
    """The host process and what the engine has to say to it."""

    def __init__(self, process: Boot, cpus: int) -> None:
        self.process = process
        self._control = process.control
        self._liveness, self._their_liveness = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        process.is_taken = True
        self._environment = dict.fromkeys(_THREAD_VARIABLES, str(cpus)) | {settings.CPUS: str(cpus)}
        self._has_begun = False
        self.warm_at: float | None = None
        abandon_in_copies(self)

    def abandon(self) -> None:
        """Close our ends in a copy of this process."""
        self._liveness.close()
        self._their_liveness.close()

    def begin(self, spec: WorkerSpec) -> None:
        """Hand over what all workers share, once."""
        if self._has_begun:
            return
        with _memory_file(spec.payload) as payload_fd:
            self._has_begun = True
            self.order(Begin(spec.version, self._environment, spec.peers), [payload_fd, self._their_liveness.fileno()])

    def order(self, order: HostOrder, descriptors: list[int]) -> None:
        """Send an order; a host that is dead is found out by `poll`."""
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            # The program may have chosen to be ended by SIGPIPE.
            socket.send_fds(self._control, [msgspec.msgpack.encode(order)], descriptors, socket.MSG_NOSIGNAL)

    def news(self) -> list[object]:
        """Return what the host has said since the last call."""
        found: list[object] = []
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while data := self._control.recv(1 << 16, socket.MSG_DONTWAIT):
                found.append(decode_news(data))
        return found

    def end_if_stuck(self, since: float) -> None:
        """End a host that could have carried out an order since then and has not, because it is stopped, say."""
        if time.monotonic() - since > _FORK_S:
            self.process.kill()

    def dismiss(self) -> None:
        """Let the host and its agents know that it is over, even if copies of this process hold our ends too."""
        for connection in (self._liveness, self._control):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._their_liveness.close()

    def close(self, timeout_s: float) -> None:
        """Wait for the host to end, and make it if it does not."""
        if not self.process.wait(timeout_s):
            self.process.kill()
        os.close(self.process.words_fd)


@contextlib.contextmanager
def _memory_file(content: bytes) -> Iterator[int]:
    """Hold a file in memory with the given content for the length of a `with` block."""
    fd = os.memfd_create("cargobike")
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        yield fd
    finally:
        os.close(fd)
