"""Arrays, tables, archives, messages and jobs by the names of hops."""

from __future__ import annotations

import io
import json
import time
import uuid
import zipfile
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pandas as pd
import pytest

from cargobike.compat.hops import (
    constants,
    dataset,
    exceptions,
    hdfs,
    jobs,
    kafka,
    numpy_helper,
    pandas_helper,
    project,
    tensorboard,
    tls,
    util,
)
from cargobike.compat.hops.translating.gone import GoneError
from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, MissingLibraryError, NotFoundError, StoreError


@pytest.fixture(params=["folder", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = str(tmp_path / "team") if request.param == "folder" else f"memory://bucket-{uuid.uuid4().hex}/team"
    monkeypatch.setenv(settings.PROJECT, url)
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv(settings.COMPAT_QUIET, "1")
    monkeypatch.chdir(tmp_path)
    return url


def test_arrays_go_and_come_back(root: str) -> None:
    array = np.arange(12.0).reshape(3, 4)
    numpy_helper.save("Resources/a.npy", array)
    numpy_helper.savez("Resources/b.npz", first=array, second=array[0])
    numpy_helper.savez_compressed("Resources/c", array)
    assert np.array_equal(numpy_helper.load("Resources/a.npy"), array)
    with numpy_helper.load("Resources/b.npz") as several:
        assert np.array_equal(several["second"], array[0])
    assert np.array_equal(numpy_helper.load("Resources/c.npz")["arr_0"], array)
    hdfs.dump("1,2\n3,4\n", "Resources/t.csv")
    assert numpy_helper.loadtxt("Resources/t.csv", delimiter=",").tolist() == [[1, 2], [3, 4]]
    assert numpy_helper.genfromtxt("Resources/t.csv", delimiter=",").shape == (2, 2)
    hdfs.dump(array.tobytes(), "Resources/raw.bin")
    assert np.array_equal(numpy_helper.fromfile("Resources/raw.bin", dtype=float), array.ravel())
    mapped = numpy_helper.memmap("Resources/raw.bin", dtype=float, shape=(3, 4))
    assert np.array_equal(mapped, array)
    hdfs.dump(b"\x80\x04N.", "Resources/evil.npy")
    with pytest.raises(ValueError, match="allow_pickle="):
        numpy_helper.load("Resources/evil.npy")


def test_tables_go_and_come_back(root: str) -> None:
    frame = pd.DataFrame({"x": range(100), "y": [f"w{number}" for number in range(100)]})
    pandas_helper.write_csv("data/t.csv", frame, index=False)
    pandas_helper.write_csv("data/t.csv.gz", frame, index=False)
    pandas_helper.write_json("data/t.json", frame)
    pandas_helper.write_parquet("data/set/one.parquet", frame)
    pandas_helper.write_parquet("data/set/two.parquet", frame)
    for path in ("data/t.csv", "data/t.csv.gz", hdfs.project_path() + "data/t.csv"):
        pd.testing.assert_frame_equal(pandas_helper.read_csv(path), frame)
    assert hdfs.load("data/t.csv.gz")[:2] == b"\x1f\x8b"
    parts = pandas_helper.read_csv("data/t.csv", chunksize=40)
    assert [len(part) for part in parts] == [40, 40, 20]
    pd.testing.assert_frame_equal(pandas_helper.read_json("data/t.json"), frame)
    assert len(pandas_helper.read_parquet("data/set")) == 200
    chosen = pandas_helper.read_parquet("data/set/one.parquet", columns=["x"], filters=[("x", "<", 3)])
    assert chosen["x"].tolist() == [0, 1, 2]
    with pytest.raises(FileNotFoundError, match=r"no file 'data/none\.csv'"):
        pandas_helper.read_csv("data/none.csv")


def test_files_are_packed_and_unpacked(root: str, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("1")
    dataset.upload("one.txt", "Resources/deep")
    dataset.upload("one.txt", "Resources/deep")
    assert dataset.path_exists("Projects/team/Resources/deep/one.txt")
    dataset.compress("Resources/deep")
    dataset.delete("Resources/deep")
    assert not dataset.path_exists("Resources/deep")
    dataset.extract("Resources/deep.zip")
    dataset.download("Resources/deep/one.txt", "got/back.txt")
    assert (tmp_path / "got" / "back.txt").read_text() == "1"
    assert dataset.get_path_info("Resources/deep")["attributes"]["dir"]


def test_an_archive_cannot_write_outside(root: str) -> None:
    scratch = io.BytesIO()
    with zipfile.ZipFile(scratch, "w") as archive:
        archive.writestr("fine.txt", "x")
        archive.writestr("../../evil.txt", "x")
    hdfs.dump(scratch.getvalue(), "in/a.zip")
    with pytest.raises(StoreError, match=r"\.\./\.\./evil\.txt leads out"):
        dataset.extract("in/a.zip")
    assert not hdfs.exists("in/fine.txt")


def test_messages_are_read_by_their_schema(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "record", "name": "Match", "fields": [{"name": "team", "type": "string"}]}
    with pytest.raises(OSError, match=r"hdfs\.dump\(schema, 'kafka/matches\.avsc'\)"):
        kafka.get_schema("matches")
    hdfs.dump(json.dumps(schema), "kafka/matches.avsc")
    parsed = kafka.convert_json_schema_to_avro(kafka.get_schema("matches"))
    message = io.BytesIO()
    fastavro.schemaless_writer(message, fastavro.parse_schema(schema), {"team": "Djurgården"})
    assert kafka.parse_avro_msg(message.getvalue(), parsed) == {"team": "Djurgården"}
    with pytest.raises(InvalidInputError, match="no Avro schema"):
        kafka.convert_json_schema_to_avro("{}x")
    with pytest.raises(InvalidInputError, match="No brokers are set"):
        kafka.get_kafka_default_config()
    properties = tmp_path / "kafka.properties"
    properties.write_text("bootstrap.servers=one:9092,two:9092\nsecurity.protocol=SSL\nssl.ca.location=/ca.pem\n")
    monkeypatch.setenv(settings.KAFKA_PROPERTIES, str(properties))
    config = kafka.get_kafka_default_config()
    assert (config["bootstrap.servers"], config["ssl.ca.location"]) == ("one:9092,two:9092", "/ca.pem")
    assert kafka.get_broker_endpoints_list() == ["one:9092", "two:9092"]
    assert kafka.get_security_protocol() == "SSL"
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'cargobike\[avro\]'"):
        kafka.parse_avro_msg(b"", parsed)


def test_a_job_runs_beside_its_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_QUIET, "1")
    hdfs.dump("import sys\nfrom hops import hdfs\nhdfs.dump(sys.argv[1], 'told.txt')\n", "Resources/job.py")
    jobs.create_job("nightly", {"type": "pythonJobConfiguration", "appPath": "Resources/job.py"})
    execution = jobs.start_job("nightly", "'two words'")
    give_up_at = time.monotonic() + 60
    while jobs.get_executions("nightly", "?filter_by=state:RUNNING")["count"]:
        assert time.monotonic() < give_up_at
        time.sleep(0.1)
    executions: dict[str, Any] = jobs.get_executions("nightly", "?offset=0&limit=1&sort_by=id:desc")
    assert [one["id"] for one in executions["items"]] == [execution["id"]]
    assert executions["items"][0]["finalStatus"] == "SUCCEEDED"
    assert hdfs.load("told.txt") == b"two words"
    assert jobs.stop_job("nightly") == []


def test_a_job_that_cannot_run_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="jobs of Java, Flink or Docker do not run here"):
        jobs.create_job("a/b", {"appPath": "Resources/main.jar"})
    with pytest.raises(NotFoundError, match="no job 'nightly'"):
        jobs.start_job("nightly")


def test_names_of_the_server_say_what_stands_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GoneError, match=r"get_key_store_pwd cannot work here\. .*CARGOBIKE_KAFKA_PROPERTIES"):
        tls.get_key_store_pwd()
    with pytest.raises(GoneError, match="parts of a Hopsworks server"):
        _ = constants.REST_CONFIG
    with pytest.raises(NotImplementedError, match=r"breakpoint\(\)"):
        tensorboard.interactive_debugger()
    with pytest.raises(exceptions.RestAPIError, match="The project 'other' was asked for"):
        project.connect("other", "host.example", port=443, api_key="secret")
    project.connect(hdfs.project_name(), "host.example")
    assert project.get_project_info(hdfs.project_name())["path"] == hdfs.project_path().rstrip("/")


def test_a_grid_becomes_lists_of_equal_length() -> None:
    assert util.grid_params({"a": [1, 2, 3], "b": [4, 5]}) == {"a": [1, 1, 2, 2, 3, 3], "b": [4, 5] * 3}
    with pytest.raises(InvalidInputError, match="b: give a list of values"):
        util.grid_params({"a": [1], "b": 5})  # type: ignore[dict-item]


def test_workers_and_servers_are_those_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "5")
    monkeypatch.setenv("NUM_TF_PS", "2")
    assert (util.num_executors(), util.num_param_servers()) == (5, 2)
    monkeypatch.setenv("NUM_TF_PS", "two")
    with pytest.raises(InvalidInputError, match="NUM_TF_PS='two'"):
        util.num_param_servers()
