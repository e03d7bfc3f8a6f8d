from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.serving.kubernetes.echoing import Echo
from cargobike.serving.kubernetes.pod import read_tokens, start_in_pod
from cargobike.serving.kubernetes.render import render
from support.cluster_requests import asked

LONG, OTHER = "a-token-that-is-long", "another-token-that-is"


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def test_tokens_come_from_the_files_of_a_secret(tmp_path: Path) -> None:
    (tmp_path / "predict").write_text(f"{LONG}\n\n  {OTHER}  \n")
    (tmp_path / "administer").write_text("the-token-of-operators")
    assert read_tokens(tmp_path) == {
        hashed(LONG): ["predict"],
        hashed(OTHER): ["predict"],
        hashed("the-token-of-operators"): ["predict", "administer"],
    }


def test_without_tokens_a_pod_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"holds no tokens; write one in each line of predict or administer"):
        read_tokens(tmp_path)
    (tmp_path / "predict").write_text(f"{LONG}\nsesame\n")
    with pytest.raises(InvalidInputError, match=r"Line 2 of .*predict is too short for a token") as caught:
        read_tokens(tmp_path)
    assert "sesame" not in str(caught.value)


def test_what_is_no_specification_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match=r"holds no specification of a deployment"):
        start_in_pod(tmp_path / "none.json", tmp_path)
    (tmp_path / "d.json").write_text('{"name": 3}')
    with pytest.raises(InvalidInputError, match=r"d.json holds no specification of a deployment: .*name"):
        start_in_pod(tmp_path / "d.json", tmp_path)
    monkeypatch.delenv("API_KEY", raising=False)
    config = render(asked(environment={"API_KEY": ""}))[0]
    (tmp_path / "d.json").write_text(config["data"]["deployment.json"])
    with pytest.raises(InvalidInputError, match=r"digits needs the environment variables API_KEY, which are not set"):
        start_in_pod(tmp_path / "d.json", tmp_path)


def test_what_processes_print_is_passed_on_line_by_line(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "front.log").write_text("of the container before\n")
    echo = Echo(tmp_path, told.append)
    with echo:
        with (tmp_path / "front.log").open("a") as file:
            file.write("new\nhalf a ")
        (tmp_path / "replica-1.log").write_text("loading\n")
        echo.look()
        with (tmp_path / "front.log").open("a") as file:
            file.write("line\nand the last")
    assert sorted(told) == ["front: and the last", "front: half a line", "front: new", "replica-1: loading"]
