"""What a function of a node uses: its feed, and paths."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Protocol

from cargobike.compat.noticing import notice
from cargobike.compat.tensorflowonspark.TFManager import TFManager
from cargobike.core.errors import InvalidInputError

__all__ = [
    "DataFeed",
    "batch_results",
    "export_saved_model",
    "hdfs_path",
    "next_batch",
    "release_port",
    "start_cluster_server",
    "terminate",
]


class Context(Protocol):
    """What is used here of a node's `ctx`."""

    defaultFS: str
    working_dir: str
    tmp_socket: socket.socket | None


class DataFeed:
    """The rows that are fed to this node, in batches.

    Args:
        mgr: The node's `ctx.mgr`.
        train_mode: Whether batches may span partitions; else they end with one. Those that want results always do.
        qname_in: The queue to take rows from.
        qname_out: Only there because it was.
        input_mapping: Column to tensor: batches are then dicts of tensor name to list, columns in sorted order.
    """

    def __init__(
        self,
        mgr: TFManager | None,
        train_mode: bool = True,
        qname_in: str = "input",
        qname_out: str = "output",
        input_mapping: Mapping[str, str] | None = None,
    ) -> None:
        if mgr is None:
            raise InvalidInputError(
                "There is no feed: this function was not started by TFCluster.run(…, input_mode=InputMode.SPARK)."
            )
        self.mgr, self.train_mode = mgr, train_mode
        self.qname_in, self.qname_out = qname_in, qname_out
        self.done_feeding = False
        self.input_tensors = None if input_mapping is None else [tensor for _, tensor in sorted(input_mapping.items())]
        self._inbox = mgr.inbox(qname_in)

    def next_batch(self, batch_size: int) -> Any:
        """Return the next rows, waiting until there are as many; fewer, or none, at the end.

        Returns:
            A list of rows, or with an `input_mapping` a dict of lists, one for each tensor.

        Raises:
            InvalidInputError: If fewer results were given than rows taken, or rows have fewer columns than are mapped.
        """
        notice("tensorflowonspark.TFNode.DataFeed.next_batch")
        rows, self.done_feeding = self._inbox.take(batch_size, whole_partitions=not self.train_mode)
        if self.input_tensors is None:
            return rows
        if not rows:
            return {tensor: [] for tensor in self.input_tensors}
        columns = list(zip(*rows, strict=False))
        if len(columns) < len(self.input_tensors):
            raise InvalidInputError(
                f"Rows have {len(columns)} columns, and input_mapping names {len(self.input_tensors)}: "
                f"{', '.join(self.input_tensors)}."
            )
        return {tensor: list(column) for tensor, column in zip(self.input_tensors, columns, strict=False)}

    def should_stop(self) -> bool:
        """Tell whether no more rows will come."""
        return self.done_feeding

    def batch_results(self, results: Sequence[Any]) -> None:
        """Give results for the rows taken, one for each, in their order.

        Raises:
            InvalidInputError: If there are more results than rows without one.
        """
        self._inbox.answer(results)

    def terminate(self) -> None:
        """Take no more rows: what is on its way is dropped, and those that feed stop at once."""
        self.done_feeding = True
        self._inbox.close()


def hdfs_path(ctx: Context, path: str) -> str:
    """Return an absolute path with a scheme.

    Relative paths are in the user's home on HDFS, and else in `ctx.working_dir`.
    """
    if "://" in path:
        return path
    if path.startswith("/"):
        return ctx.defaultFS + path
    if ctx.defaultFS.startswith(("hdfs://", "viewfs://")):
        return f"{ctx.defaultFS}/user/{getpass.getuser()}/{path}"
    if ctx.defaultFS.startswith("file://"):
        return f"{ctx.defaultFS}/{ctx.working_dir.lstrip('/')}/{path}"
    return f"{ctx.defaultFS}/{path}"


def release_port(ctx: Context) -> None:
    """Free the port that was reserved for this node's server."""
    if ctx.tmp_socket is not None:
        ctx.tmp_socket.close()
        ctx.tmp_socket = None


def start_cluster_server(ctx: Context, num_gpus: int = 1, rdma: bool = False) -> NoReturn:
    """Refuse: servers of TensorFlow 1 are gone."""
    raise InvalidInputError(
        "start_cluster_server is of TensorFlow 1. With master_node='chief' in TFCluster.run, TF_CONFIG is set, and "
        "`strategy = tf.distribute.MultiWorkerMirroredStrategy()` finds the other nodes; a parameter server runs "
        "`tf.distribute.Server(tf.train.ClusterSpec(ctx.cluster_spec), ctx.job_name, ctx.task_index).join()`."
    )


def export_saved_model(sess: object, export_dir: str, tag_set: object, signatures: object) -> NoReturn:
    """Refuse: sessions of TensorFlow 1 are gone."""
    raise InvalidInputError(
        "export_saved_model takes a session of TensorFlow 1. With TensorFlow 2 write "
        "`compat.export_saved_model(model, export_dir, is_chief=ctx.job_name == 'chief')`, or "
        "`model.export(export_dir)`."
    )


def next_batch(mgr: object, batch_size: int, qname: str = "input") -> NoReturn:
    """Refuse, as the original did."""
    raise InvalidInputError("TFNode.next_batch is gone: take batches with TFNode.DataFeed(ctx.mgr).next_batch(n).")


def batch_results(mgr: object, results: object, qname: str = "output") -> NoReturn:
    """Refuse, as the original did."""
    raise InvalidInputError("TFNode.batch_results is gone: use TFNode.DataFeed(ctx.mgr).batch_results(results).")


def terminate(mgr: object, qname: str = "input") -> NoReturn:
    """Refuse, as the original did."""
    raise InvalidInputError("TFNode.terminate is gone: use TFNode.DataFeed(ctx.mgr).terminate().")
