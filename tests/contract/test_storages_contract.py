from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cargobike.testing.storages import StorageContract


class TestDisk(StorageContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return str(tmp_path / "storage")


class TestMemory(StorageContract):
    is_shared = False

    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"memory://{tmp_path.name}/storage"


@pytest.mark.slow
class TestMoto(StorageContract):
    race_files = 8

    @pytest.fixture
    def url(self, storage_url: Callable[[str], str]) -> str:
        return storage_url("moto")


class TestSeaweed(StorageContract):
    race_files = 10

    @pytest.fixture
    def url(self, storage_url: Callable[[str], str]) -> str:
        return storage_url("seaweed")


@pytest.mark.slow
class TestHdfs(StorageContract):
    race_files = 8

    @pytest.fixture
    def url(self, storage_url: Callable[[str], str]) -> str:
        return storage_url("hdfs")
