"""Environment variables: how each is read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cargobike.core import settings


def test_every_name_has_a_meaning_and_the_right_beginning() -> None:
    names = {value for name, value in vars(settings).items() if name.isupper() and isinstance(value, str)}
    meanings = [*settings.FOR_PEOPLE, *settings.BETWEEN_PROCESSES, *settings.FOR_PROGRAMS]
    assert names == set(meanings)
    assert len(meanings) == len(names), "each name stands in one table"
    assert all(name.startswith("CARGOBIKE_") for name in names)


def test_what_is_not_set_is_empty_or_has_a_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in settings.FOR_PEOPLE | settings.BETWEEN_PROCESSES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    assert settings.project_url() == settings.index_url() == settings.take_ui_token() == ""
    assert settings.cache_folder() == str(Path.home() / ".cache" / "cargobike")
    assert settings.cpus() is None
    assert settings.fake_gpus({}) is None
    assert settings.scratch_folder() == str(tmp_path / f"cargobike-{os.getpid()}")


def test_what_is_set_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CARGOBIKE_PROJECT", "s3://bucket/searches")
    monkeypatch.setenv("CARGOBIKE_INDEX_URL", " postgresql://db/x\n")
    monkeypatch.setenv("CARGOBIKE_CACHE", "here")
    monkeypatch.setenv("CARGOBIKE_SCRATCH", "/scratch")
    assert settings.project_url() == "s3://bucket/searches"
    assert settings.index_url() == "postgresql://db/x"
    assert settings.cache_folder() == str(tmp_path / "here")
    assert settings.scratch_folder() == "/scratch"


def test_a_token_is_read_once_and_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_UI_TOKEN", "correct-horse-battery")
    assert settings.take_ui_token() == "correct-horse-battery"
    assert "CARGOBIKE_UI_TOKEN" not in os.environ
    assert settings.take_ui_token() == ""


@pytest.mark.parametrize(
    ("text", "expected"), [("3", 3), (" 2 ", 2), ("", None), ("0", None), ("-2", None), ("many", None)]
)
def test_a_share_of_the_cores_is_a_positive_number(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: int | None
) -> None:
    monkeypatch.setenv("CARGOBIKE_CPUS", text)
    assert settings.cpus() == expected


@pytest.mark.parametrize(("text", "expected"), [("0,1", ("0", "1")), ("", ()), (" a , b,,a", ("a", "b"))])
def test_made_up_gpus_are_named_in_a_list(text: str, expected: tuple[str, ...]) -> None:
    assert settings.fake_gpus({"CARGOBIKE_FAKE_GPUS": text}) == expected


def test_loading_it_loads_hardly_anything() -> None:
    program = (
        "import __future__, os, sys, collections.abc, importlib.util\n"
        "before = set(sys.modules)\n"
        f"spec = importlib.util.spec_from_file_location('settings', {settings.__file__!r})\n"
        "spec.loader.exec_module(importlib.util.module_from_spec(spec))\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
