"""What searches run in: an index on PostgreSQL, a project on S3, a Spark cluster; each started when first needed."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

CLUSTER_MARK = "CHAOS_CLUSTER"
SEGMENT = re.compile(r"/journal/(\d+)-(\d+)\.jsonl$")


class Worlds:
    """The servers that schedules share; ended on exit."""

    def __init__(self) -> None:
        self._exits = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._made: dict[str, Any] = {}

    def __enter__(self) -> Worlds:
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def _once(self, name: str, make: Any) -> Any:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]

    def postgres(self) -> dict[str, str]:
        """Return the variables for an index on PostgreSQL."""
        return {"CARGOBIKE_INDEX_URL": self._once("postgres", self._start_postgres).url}

    def _start_postgres(self) -> Any:
        from support import programs
        from support.postgres_server import PostgresServer

        server = PostgresServer(Path(programs.require("postgres")).parent)
        self._exits.callback(server.close)
        return server

    def bucket(self) -> dict[str, str]:
        """Return the variables for a project in a new bucket."""
        endpoint = self._once("s3", self._start_s3)
        with self._lock:
            name = f"chaos-{secrets.token_hex(8)}"  # a server of a world before in this process may still know its own
            _storage(endpoint).mkdir(name)
        return {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
            "CARGOBIKE_PROJECT": f"s3://{name}/team",
        }

    def _start_s3(self) -> str:
        import moto.server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = moto.server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        server.start()
        self._exits.callback(server.stop)
        host, port = server.get_host_and_port()
        return f"http://{host}:{port}"

    @contextlib.contextmanager
    def spark(self) -> Iterator[dict[str, Any]]:
        """Yield where a cluster of two workers is, for one search at a time: executors that die must be its own."""
        cluster = self._once("spark", self._start_spark)
        with self._once("spark in use", threading.Lock):
            yield cluster

    def _start_spark(self) -> dict[str, Any]:
        from cargobike.testing.spark_cluster import SparkCluster

        mark = f"{os.getpid()}-{time.time_ns()}"
        hosts = ("127.0.0.2", "127.0.0.3")
        cluster = SparkCluster(hosts, environment={host: {CLUSTER_MARK: mark} for host in hosts})
        self._exits.enter_context(cluster)
        spark: dict[str, Any] = {"master": cluster.master, "settings": cluster.settings(), "mark": mark, "workers": []}
        spark["workers"] = [process.pid for process in below_spark(spark)]
        return spark


def _storage(endpoint: str) -> Any:
    import s3fs

    access = {"key": "testing", "secret": "testing", "endpoint_url": endpoint}
    return s3fs.S3FileSystem(**access, use_listings_cache=False, skip_instance_cache=True)


def segments_in(variables: dict[str, str]) -> dict[tuple[int, int], bytes]:
    """Return the pieces of the journal in a bucket, by their first byte and the one after their last."""
    storage = _storage(variables["AWS_ENDPOINT_URL"])
    found = {}
    for name in storage.find(variables["CARGOBIKE_PROJECT"].removeprefix("s3://")):
        piece = SEGMENT.search(name)
        if piece is not None:
            found[int(piece[1]), int(piece[2])] = bytes(storage.cat_file(name))
    return found


def below_spark(spark: dict[str, Any] | None) -> list[psutil.Process]:
    """Return what runs on a cluster, below its workers and orphaned; its own processes do not count."""
    if spark is None:
        return []
    return [one for one in carrying(CLUSTER_MARK, spark["mark"]) if one.pid not in spark["workers"]]


def carrying(variable: str, value: str) -> list[psutil.Process]:
    """Return the living processes whose environment has a variable with a value."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(variable) == value:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found
