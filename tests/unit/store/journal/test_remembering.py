"""Journals and files that are listed again and again, and read only when they have changed."""

from __future__ import annotations

from pathlib import Path

from cargobike.core.errors import StoreError
from cargobike.serving.kind import DEPLOYMENTS
from cargobike.store.files.remembering import ReadOnce
from cargobike.store.files.storages import open_storage
from cargobike.store.journal.remembering import Remembered


def _write(root: Path, name: str, text: str) -> Path:
    path = root / "deployments" / name / "journal.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    read: list[str] = []

    def make(name: str, path: Path) -> str:
        read.append(name)
        if name == "bad":
            raise StoreError("it is damaged")
        return path.read_text()

    for name in ("b", "a", "bad", ".being-made"):
        _write(tmp_path, name, name)
    (tmp_path / "deployments" / "empty").mkdir()
    remembered = Remembered(make)
    first = dict(remembered.all(DEPLOYMENTS, tmp_path))
    assert list(first) == ["a", "b", "bad"]
    assert (first["a"], str(first["bad"])) == ("a", "it is damaged")
    again = dict(remembered.all(DEPLOYMENTS, tmp_path))
    assert (read, again["bad"]) == (["a", "b", "bad"], first["bad"])
    _write(tmp_path, "b", "longer")
    other = tmp_path / "other"
    other.write_text("a")  # as long as before, but another file
    other.replace(tmp_path / "deployments" / "a" / "journal.jsonl")
    changed = dict(remembered.all(DEPLOYMENTS, tmp_path))
    assert (changed["a"], changed["b"], read[3:]) == ("a", "longer", ["a", "b"])


def test_files_are_read_once_for_each_token_and_the_oldest_are_forgotten(tmp_path: Path) -> None:
    made: list[str] = []
    storage = open_storage(str(tmp_path))
    known = ReadOnce[str](most=4)

    def get(path: str, token: str = "1") -> str:
        def make() -> str:
            made.append(path)
            return f"{path} {token}"

        return known.get(storage, path, token, make)

    assert [get("a"), get("a"), get("a", "2")] == ["a 1", "a 1", "a 2"]
    for path in ("b", "c", "d"):
        get(path)
    assert made == ["a", "a", "b", "c", "d"]
    assert (get("d"), get("c"), len(made)) == ("d 1", "c 1", 5)
    get("a")
    assert len(made) == 6
