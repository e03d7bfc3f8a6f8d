"""Starts a cluster of nodes that run one function, and feeds it: on Spark, or on processes of this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final

from cargobike.compat.noticing import notice
from cargobike.compat.tensorflowonspark import places
from cargobike.compat.tensorflowonspark.feeding import Feeding
from cargobike.compat.tensorflowonspark.roles import assign_roles
from cargobike.compat.tensorflowonspark.TFSparkNode import Order, TFNodeContext
from cargobike.compat.tensorflowonspark.watching import Watch
from cargobike.core.errors import EngineError, InvalidInputError, WaitError, nearest
from cargobike.data.pushing.sending import tell_end_of_feed, tell_to_end
from cargobike.engines.engine import Engine

__all__ = ["InputMode", "TFCluster", "run"]

_QUEUES: Final = ("input", "output", "error")
_LAST_S: Final = 60.0


class InputMode:
    """Where rows come from: the function reads them itself, or is fed."""

    TENSORFLOW = 0
    SPARK = 1


class TFCluster:
    """A cluster that runs. Use as a context manager, or call `shutdown`."""

    def __init__(self, watch: Watch, place: places.Place, input_mode: int, meta: dict[str, Any]) -> None:
        self._watch, self._place = watch, place
        self.sc = place.context
        self.input_mode = input_mode
        self.queues = list(watch.order.queues)
        self.num_executors = len(watch.order.roles)
        self.defaultFS, self.working_dir = watch.order.default_fs, watch.order.working_dir
        self.cluster_meta = self.meta = meta
        self.cluster_id = meta["id"]
        self._is_shut = False

    @property
    def cluster_info(self) -> list[dict[str, Any]]:
        """Which node is where."""
        return [
            {
                "executor_id": rank,
                "job_name": self._watch.order.roles[rank].job_name,
                "task_index": self._watch.order.roles[rank].task_index,
                "host": node.host,
                "port": node.port,
                "pid": node.pid,
            }
            for rank, node in sorted(self._watch.nodes.items())
        ]

    def train(self, dataRDD: Any, num_epochs: int = 0, feed_timeout: float = 600, qname: str = "input") -> None:
        """Feed the rows of an RDD, a DataFrame, a DStream, or of any iterable of partitions to the nodes.

        Args:
            dataRDD: The rows.
            num_epochs: How often; 0 until the functions of all nodes have returned or called `terminate()`.
            feed_timeout: How long no row may be taken, in seconds.
            qname: The queue to feed to.

        Raises:
            InvalidInputError: If the cluster cannot be fed so.
            WaitError: If no row is taken for too long; names the nodes.
            TrialFailedError: If the function of a node fails.
            EngineError: If a node is lost; names it.
        """
        notice("tensorflowonspark.TFCluster.TFCluster.train")
        self._check_fed("train", qname)
        if type(num_epochs) is not int or num_epochs < 0:
            raise InvalidInputError(f"num_epochs={num_epochs!r} was given; give a whole number, 0 for no limit.")
        if hasattr(dataRDD, "foreachRDD"):
            dataRDD.foreachRDD(lambda rdd: self._feed(Feeding(rdd, self._watch.fed_nodes(), qname, feed_timeout), 1))
            return
        feeding = Feeding(dataRDD, self._watch.fed_nodes(), qname, feed_timeout)
        if feeding.is_once_only and num_epochs > 1:
            raise InvalidInputError(
                f"num_epochs={num_epochs} was given with an iterator, which can be gone through only once; give a list."
            )
        self._feed(feeding, 1 if feeding.is_once_only else num_epochs)

    def _feed(self, feeding: Feeding, num_epochs: int) -> None:
        epoch = 0
        while not num_epochs or epoch < num_epochs:
            epoch += 1
            try:
                pushed = feeding.push_all()
            except Exception as error:
                self._watch.raise_cause(error)
                raise
            if pushed.problems:
                self._watch.raise_cause(EngineError("; ".join(pushed.problems)))
            if pushed.gone:
                self._watch.await_word_of(pushed.gone, _LAST_S)
            self._watch.raise_failure()
            if not pushed.is_wanted:
                return
            if not pushed.rows and not num_epochs:
                raise InvalidInputError("The data has no rows, and num_epochs=0 means to feed it until functions stop.")

    def inference(self, dataRDD: Any, feed_timeout: float = 600, qname: str = "input") -> Any:
        """Feed rows and return one result for each, in order: an RDD, or for other data an iterator. Both are lazy.

        Args:
            dataRDD: An RDD, a DataFrame, or an iterable of partitions.
            feed_timeout: How long a node may say nothing, in seconds.
            qname: The queue to feed to.

        Raises:
            InvalidInputError: If the cluster cannot be fed so.
        """
        notice("tensorflowonspark.TFCluster.TFCluster.inference")
        self._check_fed("inference", qname)
        return Feeding(dataRDD, self._watch.fed_nodes(), qname, feed_timeout).results()

    def _check_fed(self, call: str, qname: str) -> None:
        if self.input_mode != InputMode.SPARK:
            raise InvalidInputError(
                f"{call}() feeds rows, but the cluster was started with InputMode.TENSORFLOW: its function reads its "
                "own. Start it with input_mode=InputMode.SPARK."
            )
        if qname not in self.queues:
            known = ", ".join(self.queues)
            raise InvalidInputError(f"qname={qname!r} is unknown; there are {known}.{nearest(qname, self.queues)}")
        self._watch.raise_failure()
        if self._is_shut:
            raise InvalidInputError("The cluster was shut down already.")

    def shutdown(self, ssc: Any = None, grace_secs: float = 0, timeout: float = 259200) -> None:
        """Tell the functions that no more rows follow, wait until they have returned, and end the servers.

        Args:
            ssc: A StreamingContext, which is waited for first, and stopped when that was asked for.
            grace_secs: Only there because it was: functions are waited for until they return.
            timeout: How long to wait, in seconds; -1 for ever. What still runs then is ended.

        Raises:
            WaitError: If functions have not returned in time; names them.
            TrialFailedError: If the function of a node has failed.
            EngineError: If a node was lost; names it.
        """
        notice("tensorflowonspark.TFCluster.TFCluster.shutdown")
        if self._is_shut:
            return
        timeout_s = None if timeout < 0 else float(timeout)
        give_up_at = None if timeout_s is None else time.monotonic() + timeout_s
        if ssc is not None:
            self._await_stream(ssc, give_up_at)
        self._is_shut = True
        try:
            self._end_functions(_left(give_up_at), timeout_s)
        finally:
            self._place.close()
        self._watch.raise_failure()

    def _end_functions(self, left_s: float | None, timeout_s: float | None) -> None:
        if self.input_mode == InputMode.SPARK and not self._watch.is_over:
            for node in self._watch.fed_nodes():
                tell_end_of_feed(node)
        if not self._watch.await_functions(left_s):
            roles = self._watch.order.roles
            late = [roles[rank].name for rank in self._watch.ranks(is_fed=True) if rank not in self._watch.done]
            self._watch.stop()
            raise WaitError(
                f"waited {timeout_s:g} s for the functions of {', '.join(late)}, and ended them", missing=late
            )
        if not self._watch.is_over:
            for node in self._watch.serving_nodes():
                tell_to_end(node)
        if not self._watch.await_end(_LAST_S):
            self._watch.stop()

    def _await_stream(self, ssc: Any, give_up_at: float | None) -> None:
        while not ssc.awaitTerminationOrTimeout(1):
            is_late = give_up_at is not None and time.monotonic() > give_up_at
            if self._place.desk.stop_wanted or self._watch.is_over or is_late:
                ssc.stop(stopSparkContext=False, stopGraceFully=True)
                return

    def tensorboard_url(self) -> str | None:
        """Return where TensorBoard is, if it was asked for."""
        return self._place.tensorboard_url

    def __enter__(self) -> TFCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.shutdown()
            return
        self._is_shut = True
        self._watch.stop()
        self._place.close()


def _left(give_up_at: float | None) -> float | None:
    return None if give_up_at is None else max(0.0, give_up_at - time.monotonic())


def run(
    sc: Any,
    map_fun: Callable[[Any, TFNodeContext], object],
    tf_args: Any = None,
    num_executors: int = 1,
    num_ps: int = 0,
    tensorboard: bool = False,
    input_mode: int = InputMode.TENSORFLOW,
    log_dir: str | None = None,
    driver_ps_nodes: bool = False,
    master_node: str | None = None,
    reservation_timeout: float = 600,
    queues: Sequence[str] = _QUEUES,
    eval_node: bool = False,
    release_port: bool = True,
    *,
    engine: str | Engine | None = None,
) -> TFCluster:
    """Start a cluster; returns as soon as its nodes have met, while their functions run.

    Args:
        sc: A SparkContext or SparkSession whose executors are the nodes; `None` for processes of this machine.
        map_fun: `map_fun(args, ctx)`, called in each node.
        tf_args: What it gets as `args`; a list becomes `sys.argv`, too.
        num_executors: How many nodes.
        num_ps: How many of them are parameter servers.
        tensorboard: Whether to show `log_dir` in TensorBoard; see `tensorboard_url()`.
        input_mode: `InputMode.TENSORFLOW` if the function reads rows itself, `InputMode.SPARK` if it is fed.
        log_dir: What TensorBoard shows.
        driver_ps_nodes: Only there because it was: parameter servers are nodes like others.
        master_node: `"chief"` or `"master"`, to have one; then `TF_CONFIG` is set.
        reservation_timeout: How long nodes may take to come, in seconds.
        queues: Queues that can be fed.
        eval_node: Whether one node is the evaluator.
        release_port: Whether the reserved port is free when the function is called; else `ctx.release_port()` frees it.
        engine: An engine of ours to run on, instead of `sc`.

    Raises:
        InvalidInputError: If there can be no such cluster.
        WaitError: If nodes do not come in time; names them.
    """
    notice("tensorflowonspark.TFCluster.run")
    roles = assign_roles(num_executors, num_ps, master_node, eval_node=eval_node)
    if input_mode not in (InputMode.TENSORFLOW, InputMode.SPARK):
        raise InvalidInputError(f"input_mode={input_mode!r} was given; give InputMode.TENSORFLOW or InputMode.SPARK.")
    if input_mode == InputMode.SPARK and (eval_node or driver_ps_nodes):
        raise InvalidInputError("eval_node and driver_ps_nodes are for InputMode.TENSORFLOW only.")
    if not callable(map_fun):
        raise InvalidInputError(f"map_fun={map_fun!r} was given; give a function: def map_fun(args, ctx): …")
    place = places.find(sc, engine, log_dir=log_dir if tensorboard else None, tensorboard=tensorboard)
    order = Order(
        roles=tuple(roles),
        default_fs=place.default_fs,
        working_dir=os.getcwd(),
        queues=tuple(queues),
        is_here=place.is_here,
        release_port=release_port,
        patience_s=float(reservation_timeout),
    )
    watch = Watch(
        order,
        place.engine,
        map_fun,
        tf_args,
        name=getattr(map_fun, "__name__", "map_fun").lstrip("_"),
        working_directory="launch" if place.is_here else "trial",
    )
    try:
        watch.await_nodes(float(reservation_timeout))
        if input_mode == InputMode.SPARK:
            place.free_slots()
    except BaseException:
        watch.stop()
        place.close()
        raise
    meta = {
        "id": watch.experiment,
        "num_executors": num_executors,
        "default_fs": place.default_fs,
        "working_dir": order.working_dir,
        "server_addr": place.desk.address,
        "server_key": place.desk.key,
    }
    return TFCluster(watch, place, input_mode, meta)
