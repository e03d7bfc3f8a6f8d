"""Versions that leave a project and come into one: archives, folders, and what strangers put into them."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from cargobike import models, project
from cargobike.core.errors import InvalidInputError, StoreError, UntrustedError


def double(rows: list[Any]) -> list[Any]:
    return [2 * row for row in rows]


def register() -> models.ModelVersion:
    return models.register(
        "digits", double, metrics={"accuracy": 0.9}, example=[1.0], description="Doubles.", tags=["fast"]
    )


@pytest.mark.parametrize("name", ["digits.tar", "digits.tar.gz", "digits.tgz", "digits.zip", "digits"])
def test_a_version_comes_back_whole_and_untrusted(tmp_path: Path, name: str) -> None:
    version = register()
    target = models.export_to("digits", tmp_path / "out" / name)
    with pytest.raises(InvalidInputError, match="is there already; choose another name"):
        models.export_to("digits", target)
    assert os.listdir(tmp_path / "out") == [name], "nothing is left beside it"

    project.use(tmp_path / "elsewhere")
    brought = models.import_from(target)
    assert (brought.reference, brought.fingerprint) == ("digits:1", version.fingerprint)
    assert (brought.metrics, brought.tags, brought.description) == ({"accuracy": 0.9}, ("fast",), "Doubles.")
    assert (brought.signature, brought.example) == (version.signature, [1.0])
    assert brought.is_imported
    with pytest.raises(UntrustedError, match=r"digits:1 was brought in from digits.*trust=True"):
        brought.predict([2.0])
    assert brought.predict([2.0], trust=True) == [4.0]
    assert models.import_from(target, "other").reference == "other:1"
    assert models.import_from(target).reference == "digits:2"


def test_a_version_goes_through_mlflows_folder(tmp_path: Path) -> None:
    register()
    folder = models.export_to("digits", tmp_path / "mlflow", format="mlflow")
    assert (folder / "MLmodel").is_file()
    with pytest.raises(InvalidInputError, match="does not name the model; give name="):
        models.import_from(folder)
    brought = models.import_from(folder, "back")
    assert brought.is_imported
    assert brought.predict([3.0], trust=True) == [6.0]
    models.register("words", files=folder / "MLmodel")
    with pytest.raises(InvalidInputError, match="words:1 holds files and cannot predict"):
        models.export_to("words", tmp_path / "other", format="mlflow")
    with pytest.raises(InvalidInputError, match="format='onnx' was given"):
        models.export_to("digits", tmp_path / "other", format="onnx")  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"", b"my thesis" * 1000, b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "digits.tar").write_bytes(content)
    with pytest.raises(StoreError, match=r"cannot be read as an archive|holds no version of a model"):
        models.import_from(tmp_path / "digits.tar")
    with pytest.raises(InvalidInputError, match="There is no file or folder"):
        models.import_from(tmp_path / "nowhere")
    assert models.list() == []


def changed(source: Path, target: Path, change: Any) -> None:
    """Write an archive again with other members."""
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for member in old.getmembers():
            data = old.extractfile(member)
            assert data is not None
            change(new, member, data.read())


def test_nothing_of_a_hostile_archive_is_unpacked(tmp_path: Path) -> None:
    register()
    source = models.export_to("digits", tmp_path / "digits.tar")

    def add(tar: tarfile.TarFile, member: tarfile.TarInfo, data: bytes) -> None:
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))

    def longer(tar: tarfile.TarFile, member: tarfile.TarInfo, data: bytes) -> None:
        add(tar, member, data + b"x" if member.name.endswith("model.pkl") else data)

    def linked(tar: tarfile.TarFile, member: tarfile.TarInfo, data: bytes) -> None:
        if member.name.endswith("example.json"):
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            data = b""
        add(tar, member, data)

    def outside(tar: tarfile.TarFile, member: tarfile.TarInfo, data: bytes) -> None:
        if member.name == "manifest.json":
            manifest = json.loads(data)
            manifest["files"][0]["path"] = "../../outside"
            data = json.dumps(manifest).encode()
        add(tar, member, data)

    def besides(tar: tarfile.TarFile, member: tarfile.TarInfo, data: bytes) -> None:
        add(tar, member, data)
        add(tar, tarfile.TarInfo("../outside"), b"evil")

    for change, words in (
        (longer, r"is damaged: model/model\.pkl is not what the manifest says"),
        (linked, r"lacks files/example\.json"),
        (outside, "is not one of a model's files"),
    ):
        changed(source, tmp_path / "bad.tar", change)
        with pytest.raises(StoreError, match=words):
            models.import_from(tmp_path / "bad.tar", "bad")
    changed(source, tmp_path / "more.tar", besides)
    assert models.import_from(tmp_path / "more.tar", "good").verify() == []
    assert not (tmp_path / "outside").exists()
    assert [version.reference for version in models.list()] == ["digits:1", "good:1"]


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    register()
    source = models.export_to("digits", tmp_path / "digits.zip")
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, b"\0" * (64 << 20) if name.endswith("model.pkl") else old.read(name))
    with pytest.raises(StoreError, match=r"model/model\.pkl is not what the manifest says"):
        models.import_from(tmp_path / "bomb.zip", "bomb")


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    register()
    folder = models.export_to("digits", tmp_path / "folder")
    (folder / "files" / "example.json").unlink()
    (folder / "files" / "example.json").symlink_to("/etc/hostname")
    with pytest.raises(StoreError, match=r"lacks files/example\.json"):
        models.import_from(folder, "linked")
