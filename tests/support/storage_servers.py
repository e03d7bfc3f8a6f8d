"""Servers with storage, started once for all tests that ask for one: moto, SeaweedFS, HDFS, Redis."""

from __future__ import annotations

import functools
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import hdfs_server, programs
from support.hdfs_server import HdfsServer
from support.redis_server import RedisServer
from support.seaweed_server import KEY, SECRET, SeaweedServer


@dataclass
class S3Endpoint:
    """Where a server speaks S3, and with which keys."""

    address: str
    key: str
    secret: str

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make it the S3 of this process, and of those that it starts."""
        for name, value in {
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.address,
        }.items():
            monkeypatch.setenv(name, value)

    @functools.cached_property
    def bucket(self) -> str:
        """A bucket, made when it is first asked for: some servers prepare space for each."""
        import s3fs

        name = f"bucket{time.monotonic_ns()}"
        options = {"endpoint_url": self.address, "region_name": "us-east-1"}
        fs = s3fs.S3FileSystem(key=self.key, secret=self.secret, client_kwargs=options, skip_instance_cache=True)
        fs.call_s3("create_bucket", Bucket=name)
        return name


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[S3Endpoint]:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield S3Endpoint(f"http://{host}:{port}", "testing", "testing")
    server.stop()


@pytest.fixture(scope="session")
def seaweed() -> Iterator[SeaweedServer]:
    server = SeaweedServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def seaweed_endpoint(seaweed: SeaweedServer) -> S3Endpoint:
    return S3Endpoint(seaweed.endpoint, KEY, SECRET)


@pytest.fixture(scope="session")
def hdfs() -> Iterator[HdfsServer]:
    if not hdfs_server.IS_HERE:
        pytest.skip(hdfs_server.REASON)
    server = HdfsServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer(programs.require("redis-server"))
    yield server
    server.close()


@pytest.fixture
def storage_url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return what makes a new address on a storage, by its name: `moto`, `seaweed`, `hdfs`."""

    def make(name: str) -> str:
        if name == "hdfs":
            server: HdfsServer = request.getfixturevalue("hdfs")
            return f"{server.url}/tests/{secrets.token_hex(6)}"
        endpoint: S3Endpoint = request.getfixturevalue(f"{name}_endpoint")
        endpoint.use(monkeypatch)
        return f"s3://{endpoint.bucket}/{secrets.token_hex(6)}/searches"

    return make


@pytest.fixture(params=["seaweed", pytest.param("hdfs", marks=pytest.mark.slow)])
def project_url(
    request: pytest.FixtureRequest,
    storage_url: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Return a project on a real storage, used by this process."""
    return _used(storage_url(request.param), tmp_path, monkeypatch)


@pytest.fixture(
    params=["moto", pytest.param("seaweed", marks=pytest.mark.slow), pytest.param("hdfs", marks=pytest.mark.slow)]
)
def project_there(
    request: pytest.FixtureRequest,
    storage_url: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Return a project on each kind of storage, used by this process; the quickest of them is no real one."""
    return _used(storage_url(request.param), tmp_path, monkeypatch)


def _used(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "here"))
    monkeypatch.setenv("CARGOBIKE_PROJECT", address)
    return address


KILLED_WRITER = """
import sys
from cargobike.store.files.storages import open_storage
storage = open_storage(sys.argv[1])
number = 0
while True:
    storage.write("replaced", bytes([97 + number % 2]) * 3_000_000)
    assert storage.create(f"created/{number}", b"%d" % number * 1000)
    print(number, flush=True)
    number += 1
"""
"""A program that writes to a storage until it is killed, and prints what was acknowledged."""
