"""Manifests and facts that a stranger wrote, or that were damaged: refused with words, and none hides the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike import models
from cargobike.core.errors import StoreError
from cargobike.models.facts import State, decode_fact
from cargobike.models.record import FileEntry, decode_manifest, fingerprint_of, is_plain

HASH = "0" * 64


def manifest(**changes: Any) -> bytes:
    files = changes.pop("files", [{"path": "model/model.pkl", "size_bytes": 1, "sha256": HASH}])
    entries = [FileEntry(**file) for file in files]
    described = {
        "format": 1,
        "name": "digits",
        "version": 1,
        "fingerprint": fingerprint_of("python", {}, None, entries),
        "flavour": "python",
        "files": files,
        "token": "0123456789ab",
    }
    return json.dumps({**described, **changes}).encode()


def test_a_plain_manifest_is_read() -> None:
    assert decode_manifest(manifest(), "here").size_bytes == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 2}, "has format 2; this Cargobike reads format 1. Install a newer one"),
        ({"version": 0}, "Expected `int` >= 1"),
        ({"version": 10**12}, "Expected `int` <= 1000000000"),
        ({"version": 1e300}, "Expected `int`"),
        ({"name": "../up"}, "matching regex"),
        ({"token": "../../../etc/x"}, "matching regex"),
        ({"fingerprint": "1" * 64}, "its fingerprint is not that of what it lists"),
        ({"fingerprint": "x"}, "matching regex"),
        ({"files": [{"path": "model/x", "size_bytes": 2**63, "sha256": HASH}]}, "<= 4611686018427387904"),
        ({"files": [{"path": "model/x", "size_bytes": -1, "sha256": HASH}]}, ">= 0"),
        ({"files": [{"path": "model/x", "size_bytes": 1, "sha256": "x"}]}, "matching regex"),
        ({"files": [{"path": "model/x", "size_bytes": 1, "sha256": HASH}] * 2}, "a file is listed twice"),
        (
            {"files": [{"path": path, "size_bytes": 1, "sha256": HASH} for path in ("model/x", "model/x/y")]},
            "'model/x' is a file and a folder",
        ),
        ({"metrics": {"a": "x"}}, "Invalid enum value|Expected"),
        ({"libraries": "torch"}, "Expected `array`"),
    ],
)
def test_manifests_that_lie_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StoreError, match=words):
        decode_manifest(manifest(**changes), "here")


@pytest.mark.parametrize(
    "path",
    ["../up", "/etc/passwd", "model/../../up", "model/..", "model/", "model//x", "model/./x", "x", "model", "",
     "model\\..\\up", "model/a\0b", "model/\n", "model/" + "x" * 300, "model/" + "x/" * 500 + "y", "manifest.json",
     "model/\ud800"],
)  # fmt: skip
def test_no_path_leads_out(path: str) -> None:
    assert not is_plain(path)
    files = [{"path": path, "size_bytes": 1, "sha256": HASH}]
    try:
        data = manifest(files=files)
    except UnicodeEncodeError:
        return  # it cannot even be written
    with pytest.raises(StoreError, match=r"is not one of a model's files|is no manifest"):
        decode_manifest(data, "here")


def test_a_huge_manifest_is_not_parsed() -> None:
    with pytest.raises(StoreError, match="it has more than 4 MiB"):
        decode_manifest(b" " * (5 << 20), "here")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_manifest_or_refused(data: bytes) -> None:
    with pytest.raises(StoreError, match="here is no manifest"):
        decode_manifest(data, "here")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["fact", "at", "alias", "version", "add", "text", "by"]), inner, max_size=5), max_leaves=10))  # fmt: skip  # noqa: E501
def test_any_json_is_a_fact_or_refused(value: Any) -> None:
    try:
        fact = decode_fact(json.dumps(value).encode(), "here")
    except StoreError:
        return
    state = State()
    state.apply(fact)
    assert state.facts == 1


def test_a_damaged_manifest_hides_no_other_version(tmp_path: Path) -> None:
    for _ in range(3):
        models.register("digits", len)
    models.register("other", len)
    (tmp_path / "models.sqlite").unlink()
    (tmp_path / "models" / "digits" / "2" / "manifest.json").write_text("{")

    assert [version.reference for version in models.list()] == ["digits:3", "other:1"]
    assert [version.version for version in models.list("digits")] == [3, 2, 1]
    assert models.get("digits:3").version == 3
    with pytest.raises(StoreError, match=r"2/manifest\.json is no manifest of a model"):
        models.get("digits:2").predictor()
    assert models.register("digits", len, metrics={"a": 1.0}).version == 4
    assert models.best("digits", "a").version == 4


def test_a_manifest_of_another_version_is_refused(tmp_path: Path) -> None:
    models.register("digits", len)
    models.register("digits", len)
    folder = tmp_path / "models" / "digits"
    (folder / "2" / "manifest.json").write_bytes((folder / "1" / "manifest.json").read_bytes())
    with pytest.raises(StoreError, match="describes another version: digits:1"):
        _ = models.get("digits:2").manifest


def test_a_damaged_fact_stops_what_depends_on_it_and_nothing_else(tmp_path: Path) -> None:
    version = models.register("digits", len)
    version.promote("champion")
    models.register("other", len).promote("champion")
    (tmp_path / "models" / "digits" / "facts" / "2.json").write_text('{"fact": "alias-moved"}')

    assert [one.reference for one in models.list()] == ["digits:1", "other:1"]
    assert models.get("digits:1").flavour == "python"
    assert models.get("other@champion").version == 1
    with pytest.raises(StoreError, match=r"Not all facts about the model digits can be read: .*facts/2\.json"):
        models.get("digits@champion")
    with pytest.raises(StoreError, match="Not all facts about the model digits"):
        version.promote("champion")


@pytest.mark.parametrize("content", [b"", b"my thesis\n" * 100, b"SQLite format 3\0" + b"x" * 5000])
def test_a_cache_that_cannot_be_used_is_not_needed(tmp_path: Path, content: bytes) -> None:
    models.register("digits", len).promote("champion")
    (tmp_path / "models.sqlite").write_bytes(content)
    for _ in range(2):
        assert [one.aliases for one in models.list("digits")] == [["champion"]]
    if content.startswith(b"my"):
        assert (tmp_path / "models.sqlite").read_bytes() == content, "it may be a file of the user's"


def test_an_older_cache_is_caught_up_with_and_a_newer_one_left_alone(tmp_path: Path) -> None:
    models.register("digits", len)
    before = (tmp_path / "models.sqlite").read_bytes()
    models.register("digits", len).promote("champion")
    (tmp_path / "models.sqlite").write_bytes(before)
    assert [(one.version, one.aliases) for one in models.list("digits")] == [(2, ["champion"]), (1, [])]
