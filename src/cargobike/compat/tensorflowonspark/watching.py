"""A cluster as its driver sees it: an experiment with one gang, run in a thread, and what its nodes have said."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from cargobike import experiment
from cargobike.compat.tensorflowonspark.TFSparkNode import DONE, READY, Order, Ready, run_node
from cargobike.core.errors import CargobikeError, EngineError, InvalidInputError, WaitError
from cargobike.core.facts import AttemptLost, ExperimentStarted, Fact
from cargobike.data.pushing.sending import Node
from cargobike.engines.engine import Engine
from cargobike.experiments.finding import find_experiment

_LOOK_S = 0.5
_STOP_S = 90.0
_FAILURE_S = 10.0


class Watch:
    """Runs the nodes of a cluster in a thread, and knows which are there and which are done.

    Args:
        order: What nodes are told.
        engine: Where they live.
        map_fun: What they run.
        args: What that is called with.
        options: Further arguments of `experiment.allreduce`.
    """

    def __init__(
        self, order: Order, engine: str | Engine, map_fun: Callable[..., object], args: Any, **options: Any
    ) -> None:
        self.order = order
        self.failure: BaseException | None = None
        self.experiment = ""
        self.nodes: dict[int, Ready] = {}
        self.done: set[int] = set()
        self._changed = threading.Condition()
        self._is_over = False
        self._call = functools.partial(
            experiment.allreduce,
            functools.partial(run_node, order, map_fun, args),
            workers=len(order.roles),
            engine=engine,
            stall_timeout_s=None,
            callbacks=[self],
            quiet=True,
            **options,
        )
        self._thread = threading.Thread(target=self._run, name="cargobike-cluster", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001 - raised where the user's program waits
            self.failure = error
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    # -- what the experiment calls -------------------------------------------------------------------------------

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Learn the experiment's id; end it when a node is lost, since what was fed to it is lost, too."""
        for fact in facts:
            if isinstance(fact, ExperimentStarted):
                self.experiment = fact.id
            elif isinstance(fact, AttemptLost) and not fact.interrupted:
                raise EngineError(
                    f"The cluster has lost a node: {fact.reason}. Rows that were fed to it are lost, so that the "
                    f"cluster cannot go on without them; start it again. Its nodes were {self.describe()}."
                )

    def on_published(self, rank: int, name: str, value: bytes) -> None:
        """Learn that a node is there, or done."""
        with self._changed:
            if name == READY:
                self.nodes[rank] = msgspec.json.decode(value, type=Ready)
            elif name == DONE:
                self.done.add(rank)
            self._changed.notify_all()

    # -- what the cluster asks -----------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether all nodes have ended."""
        return self._is_over

    def describe(self) -> str:
        """Say which node is where."""
        return ", ".join(
            f"{self.order.roles[rank].name} (executor {rank}) on {node.machine}, process {node.pid}"
            for rank, node in sorted(self.nodes.items())
        )

    def fed_nodes(self) -> list[Node]:
        """Return the nodes that rows can be fed to."""
        return [self._node(rank) for rank in self.ranks(is_fed=True)]

    def serving_nodes(self) -> list[Node]:
        """Return the nodes that end when the others have."""
        return [self._node(rank) for rank in self.ranks(is_fed=False)]

    def ranks(self, *, is_fed: bool) -> list[int]:
        """Return the numbers of the nodes that are fed, or of the others."""
        return [rank for rank, role in enumerate(self.order.roles) if role.is_fed == is_fed]

    def _node(self, rank: int) -> Node:
        node = self.nodes[rank]
        return Node(self.order.roles[rank].name, node.address, node.secret)

    def await_nodes(self, timeout_s: float) -> None:
        """Wait until all nodes are there.

        Raises:
            WaitError: If some do not come; names them. The experiment is stopped then.
        """
        if not self._wait(lambda: len(self.nodes) == len(self.order.roles), timeout_s):
            missing = [role.name for rank, role in enumerate(self.order.roles) if rank not in self.nodes]
            self.stop()
            raise WaitError(f"waited {timeout_s:g} s for {', '.join(missing)}", missing=missing)
        self.raise_failure()

    def await_functions(self, timeout_s: float | None) -> bool:
        """Wait until the functions of all nodes that are fed have returned; tells whether they have."""
        wanted = set(self.ranks(is_fed=True))
        return self._wait(lambda: wanted <= self.done, timeout_s)

    def await_word_of(self, names: Sequence[str], timeout_s: float) -> None:
        """Wait until it is known of some nodes that their functions have returned, or why they are gone."""
        ranks = {rank for rank, role in enumerate(self.order.roles) if role.name in names}
        self._wait(lambda: ranks <= self.done, timeout_s)

    def await_end(self, timeout_s: float | None) -> bool:
        """Wait until all nodes have ended; tells whether they have."""
        has_ended = self._wait(lambda: False, timeout_s)
        if has_ended:
            self._thread.join(_FAILURE_S)
        return has_ended

    def _wait(self, is_so: Callable[[], bool], timeout_s: float | None) -> bool:
        give_up_at = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while not (is_so() or self._is_over):
                if give_up_at is not None and time.monotonic() >= give_up_at:
                    return False
                self._changed.wait(_LOOK_S)
        return True

    def raise_failure(self) -> None:
        """Raise what made the experiment fail, if it has."""
        if self.failure is not None:
            raise self.failure

    def raise_cause(self, error: Exception) -> None:
        """Raise what made the experiment fail, which explains an error of those that feed it; it may come later."""
        if not isinstance(error, InvalidInputError | WaitError):
            self.await_end(_FAILURE_S)
        if self.failure is not None:
            raise self.failure from error

    def stop(self, timeout_s: float = _STOP_S) -> None:
        """End the experiment with force, and wait for that."""
        if self.experiment and not self._is_over:
            try:
                find_experiment(self.experiment).stop_request.touch()
            except (CargobikeError, OSError):  # it has just ended
                pass
            self.await_end(timeout_s)
