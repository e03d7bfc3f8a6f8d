"""Nodes of a cluster of TensorFlowOnSpark: who is what, where paths lead, and what a feed returns."""

from __future__ import annotations

import getpass
import json
import os
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.compat.tensorflowonspark import TFNode, TFSparkNode
from cargobike.compat.tensorflowonspark.roles import assign_roles, cluster_spec
from cargobike.compat.tensorflowonspark.TFManager import TFManager
from cargobike.core.errors import InvalidInputError
from cargobike.data.pushing.receiving import Receiver
from cargobike.data.pushing.sending import Node, push, push_for_results, tell_end_of_feed

PATIENCE_S = 20.0


@given(
    num_ps=st.integers(0, 3),
    master=st.sampled_from([None, "chief", "master"]),
    eval_node=st.booleans(),
    workers=st.integers(0, 4),
)
def test_roles_come_in_their_order(num_ps: int, master: str | None, eval_node: bool, workers: int) -> None:
    total = num_ps + (master is not None) + eval_node + workers
    if workers == 0 and master is None:
        with pytest.raises(InvalidInputError):
            assign_roles(total, num_ps, master, eval_node=eval_node)
        return
    roles = assign_roles(total, num_ps, master, eval_node=eval_node)
    wanted = ["ps"] * num_ps + [master] * (master is not None) + ["evaluator"] * eval_node + ["worker"] * workers
    assert [role.job_name for role in roles] == wanted
    spec = cluster_spec(roles, [f"host:{number}" for number in range(total)])
    assert sum(map(len, spec.values())) == total
    for number, role in enumerate(roles):
        assert spec[role.job_name][role.task_index] == f"host:{number}"
    ctx = TFSparkNode.TFNodeContext(cluster_spec=spec)
    assert ctx.num_workers == workers + (master is not None)


def test_clusters_that_cannot_be_are_refused_with_all_mistakes() -> None:
    with pytest.raises(InvalidInputError, match=r"num_executors=0(.|\n)*num_ps=-1(.|\n)*master_node='boss'"):
        assign_roles(0, -1, "boss", eval_node=False)
    with pytest.raises(InvalidInputError, match="num_executors=2 was given, but the cluster needs at least 3 nodes"):
        assign_roles(2, 2, None, eval_node=False)


@pytest.mark.parametrize(
    ("default_fs", "path", "expected"),
    [
        ("file://", "hdfs://foo/bar", "hdfs://foo/bar"),
        ("hdfs://namenode:8020", "/absolute", "hdfs://namenode:8020/absolute"),
        ("hdfs://namenode:8020", "relative", f"hdfs://namenode:8020/user/{getpass.getuser()}/relative"),
        ("viewfs://ns", "relative", f"viewfs://ns/user/{getpass.getuser()}/relative"),
        ("file://", "/absolute", "file:///absolute"),
        ("file://", "a/relative", "file:///where/it/began/a/relative"),
        ("s3a://bucket", "relative", "s3a://bucket/relative"),
    ],
)
def test_paths_lead_where_they_did(default_fs: str, path: str, expected: str) -> None:
    ctx = TFSparkNode.TFNodeContext(defaultFS=default_fs, working_dir="/where/it/began")
    assert ctx.absolute_path(path) == expected
    assert TFNode.hdfs_path(ctx, path) == expected


def test_the_cluster_is_described_for_tensorflow_if_it_has_a_chief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", "of another")
    roles = assign_roles(3, 1, "chief", eval_node=False)
    spec = cluster_spec(roles, ["h:1", "h:2", "h:3"])
    TFSparkNode._set_environment(spec, roles[2])
    assert json.loads(os.environ["TF_CONFIG"]) == {
        "cluster": {"ps": ["h:1"], "chief": ["h:2"], "worker": ["h:3"]},
        "task": {"type": "worker", "index": 0},
        "environment": "cloud",
    }
    workers = assign_roles(1, 0, None, eval_node=False)
    TFSparkNode._set_environment(cluster_spec(workers, ["h:1"]), workers[0])
    assert "TF_CONFIG" not in os.environ


def test_the_reserved_port_is_free_once_it_is_released() -> None:
    reserved = socket.socket()
    reserved.bind(("127.0.0.1", 0))
    address = reserved.getsockname()
    ctx = TFSparkNode.TFNodeContext(tmp_socket=reserved)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(address)
    ctx.release_port()
    assert ctx.tmp_socket is None
    ctx.release_port()
    with socket.socket() as other:
        other.bind(address)


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda ctx: ctx.start_cluster_server(1, False), "MultiWorkerMirroredStrategy"),
        (TFNode.start_cluster_server, r"tf\.distribute\.Server"),
        (lambda ctx: ctx.export_saved_model(None, "d", "t", {}), r"compat\.export_saved_model"),
        (lambda ctx: TFNode.next_batch(ctx.mgr, 3), "DataFeed"),
        (lambda ctx: TFNode.batch_results(ctx.mgr, []), "DataFeed"),
        (lambda ctx: TFNode.terminate(ctx.mgr), "DataFeed"),
        (lambda ctx: ctx.get_data_feed(), "InputMode.SPARK"),
    ],
)
def test_what_is_gone_says_what_stands_in_its_place(call: object, instead: str) -> None:
    with pytest.raises(InvalidInputError, match=instead):
        call(TFSparkNode.TFNodeContext())  # type: ignore[operator]


def test_a_feed_gives_rows_or_columns_in_sorted_order_and_takes_results() -> None:
    receiver = Receiver(queues=["input", "other"])
    node = Node("worker:0", receiver.address, receiver.secret)
    mgr = TFManager(receiver)
    feeder = threading.Thread(
        target=push,
        args=[[node], [(1, "a"), (2, "b"), (3, "c")]],
        kwargs={"turn": 0, "queue": "input", "patience_s": 9},
    )
    feeder.start()
    feed = TFNode.DataFeed(mgr, input_mapping={"z": "label", "a": "image"})
    assert feed.next_batch(2) == {"image": [1, 2], "label": ["a", "b"]}
    assert not feed.should_stop()
    tell_end_of_feed(node)
    assert feed.next_batch(2) == {"image": [3], "label": ["c"]}
    assert feed.should_stop()
    assert feed.done_feeding
    assert feed.next_batch(2) == {"image": [], "label": []}
    feeder.join(PATIENCE_S)
    receiver.close()


def test_a_feed_for_results_ends_batches_with_partitions() -> None:
    receiver = Receiver()
    node = Node("worker:0", receiver.address, receiver.secret)
    sizes = []

    def function() -> None:
        feed = TFNode.DataFeed(TFManager(receiver), False)
        while not feed.should_stop():
            batch = feed.next_batch(4)
            sizes.append(len(batch))
            feed.batch_results([row + 1 for row in batch])

    thread = threading.Thread(target=function)
    thread.start()
    for start in (0, 100):
        rows = range(start, start + 6)
        assert list(push_for_results(node, rows, queue="input", patience_s=PATIENCE_S)) == [row + 1 for row in rows]
    tell_end_of_feed(node)
    thread.join(PATIENCE_S)
    receiver.close()
    assert sizes == [4, 2, 4, 2, 0]


def test_terminate_ends_feeding_at_once_and_is_the_state() -> None:
    receiver = Receiver()
    mgr = TFManager(receiver)
    assert mgr.get("state") == "running"
    feed = TFNode.DataFeed(mgr)
    feed.terminate()
    assert feed.should_stop()
    assert mgr.get("state") == "terminating"
    assert feed.next_batch(10) == []
    node = Node("worker:0", receiver.address, receiver.secret)
    assert not push([node], [1], turn=0, queue="input", patience_s=PATIENCE_S).is_wanted
    receiver.close()
    with pytest.raises(InvalidInputError, match=r"DataFeed\(ctx\.mgr\)\.next_batch"):
        mgr.get_queue("input")


def test_rows_with_too_few_columns_are_refused() -> None:
    receiver = Receiver()
    node = Node("worker:0", receiver.address, receiver.secret)
    feeder = threading.Thread(target=push, args=[[node], [(1,)]], kwargs={"turn": 0, "queue": "input", "patience_s": 9})
    feeder.start()
    with pytest.raises(InvalidInputError, match="Rows have 1 columns, and input_mapping names 2: x, y"):
        TFNode.DataFeed(TFManager(receiver), input_mapping={"a": "x", "b": "y"}).next_batch(1)
    receiver.close()
    feeder.join(PATIENCE_S)
