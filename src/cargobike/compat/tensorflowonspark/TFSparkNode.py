"""One node of a cluster: what runs in a rank of the gang, and the context that its function is called with."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import msgspec

from cargobike.compat.tensorflowonspark import TFNode
from cargobike.compat.tensorflowonspark.roles import Role, cluster_spec, count_workers
from cargobike.compat.tensorflowonspark.TFManager import TFManager
from cargobike.core import settings
from cargobike.core.running.member import LOOPBACK, current
from cargobike.data.pushing.receiving import Receiver

__all__ = ["TFNodeContext"]

READY: Final = "a node of a cluster is there"
DONE: Final = "the function of a node has returned"
_LOOK_S: Final = 0.5


class TFNodeContext:
    """What a function is told about its node.

    Attributes:
        executor_id: The number of the node; `worker_num` is the same.
        job_name: Its role.
        task_index: Its number among those of the role.
        cluster_spec: Addresses by role.
        num_workers: How many nodes train.
        defaultFS: The file system that paths without a scheme are on.
        working_dir: The directory that relative paths are in.
        mgr: What a `TFNode.DataFeed` takes.
        tmp_socket: What reserves the node's port; `None` once it is released.
    """

    def __init__(
        self,
        executor_id: int = 0,
        job_name: str = "",
        task_index: int = 0,
        cluster_spec: Mapping[str, Sequence[str]] | None = None,
        defaultFS: str = "file://",
        working_dir: str = ".",
        mgr: TFManager | None = None,
        tmp_socket: socket.socket | None = None,
    ) -> None:
        self.worker_num = self.executor_id = executor_id
        self.job_name, self.task_index = job_name, task_index
        self.cluster_spec = dict(cluster_spec or {})
        self.num_workers = count_workers(self.cluster_spec)
        self.defaultFS, self.working_dir = defaultFS, working_dir
        self.mgr, self.tmp_socket = mgr, tmp_socket

    def absolute_path(self, path: str) -> str:
        """Return an absolute path with a scheme."""
        return TFNode.hdfs_path(self, path)

    def get_data_feed(
        self,
        train_mode: bool = True,
        qname_in: str = "input",
        qname_out: str = "output",
        input_mapping: Mapping[str, str] | None = None,
    ) -> TFNode.DataFeed:
        """Return the rows that are fed to this node."""
        return TFNode.DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)

    def release_port(self) -> None:
        """Free the port that was reserved for this node's server."""
        TFNode.release_port(self)

    def start_cluster_server(self, num_gpus: int = 1, rdma: bool = False) -> NoReturn:
        """Refuse, and say what TensorFlow 2 has instead."""
        TFNode.start_cluster_server(self, num_gpus, rdma)

    def export_saved_model(self, sess: object, export_dir: str, tag_set: object, signatures: object) -> NoReturn:
        """Refuse, and say what TensorFlow 2 has instead."""
        TFNode.export_saved_model(sess, export_dir, tag_set, signatures)


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What every node of a cluster is told.

    Attributes:
        roles: The role of each node.
        default_fs: The file system that paths without a scheme are on.
        working_dir: Where the cluster was started.
        queues: Queues that rows can be fed to.
        is_here: Whether all nodes and feeders are on this machine, so that no other needs to reach them.
        release_port: Whether ports are free when the function is called.
        patience_s: How long to wait for the other nodes.
    """

    roles: tuple[Role, ...]
    default_fs: str
    working_dir: str
    queues: tuple[str, ...]
    is_here: bool
    release_port: bool
    patience_s: float


class Ready(msgspec.Struct, frozen=True):
    """What a node tells the driver and the others: where it is, and what those must know who feed it."""

    host: str
    port: int
    address: str
    secret: bytes
    machine: str
    pid: int


def run_node(order: Order, map_fun: Callable[[Any, TFNodeContext], object], args: Any) -> None:
    """Be one node: meet the others, call the function, and end when it returns, or when servers are not needed."""
    os.environ[settings.COMPAT_QUIET] = "1"
    member = current()
    gang, role = member.gang, order.roles[member.rank]
    assert gang is not None
    host = LOOPBACK if order.is_here else gang.address
    receiver = Receiver(host, order.queues, lambda: member.should_stop)
    try:
        reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        reserved.bind((host, 0))
        ready = Ready(
            host, reserved.getsockname()[1], receiver.address, receiver.secret, socket.gethostname(), os.getpid()
        )
        said = gang.exchange(READY, msgspec.json.encode(ready), timeout_s=order.patience_s)
        nodes = [msgspec.json.decode(one, type=Ready) for one in said]
        spec = cluster_spec(order.roles, [f"{node.host}:{node.port}" for node in nodes])
        ctx = TFNodeContext(
            executor_id=member.rank,
            job_name=role.job_name,
            task_index=role.task_index,
            cluster_spec=spec,
            defaultFS=order.default_fs,
            working_dir=order.working_dir,
            mgr=TFManager(receiver),
            tmp_socket=reserved,
        )
        _set_environment(spec, role)
        if order.release_port:
            ctx.release_port()
        if isinstance(args, list):
            sys.argv = args
        if role.is_fed:
            map_fun(args, ctx)
        else:
            _serve(map_fun, args, ctx, receiver.end_wanted)
    except BaseException as error:
        receiver.close(f"{type(error).__name__}: {error}")
        raise
    receiver.close()
    gang.publish(DONE, b"")


def _set_environment(spec: Mapping[str, Sequence[str]], role: Role) -> None:
    """Describe the cluster for TensorFlow, if it has a chief; without one, each node stays alone."""
    if "chief" in spec or "master" in spec:
        task = {"type": role.job_name, "index": role.task_index}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": dict(spec), "task": task, "environment": "cloud"})
    else:
        os.environ.pop("TF_CONFIG", None)


def _serve(
    map_fun: Callable[[Any, TFNodeContext], object], args: Any, ctx: TFNodeContext, end_wanted: threading.Event
) -> None:
    """Run the function of a server, which may never return, until it is not needed any more."""
    errors: list[BaseException] = []

    def call() -> None:
        try:
            map_fun(args, ctx)
        except BaseException as error:  # noqa: BLE001 - raised again where the node ends
            errors.append(error)

    thread = threading.Thread(target=call, name=f"{ctx.job_name}:{ctx.task_index}", daemon=True)
    thread.start()
    while thread.is_alive() and not end_wanted.is_set():
        thread.join(_LOOK_S)
    if errors:
        raise errors[0]
