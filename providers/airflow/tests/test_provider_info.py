from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk import Asset

from cargobike_provider import get_provider_info
from cargobike_provider.assets.cargobike import create_asset
from cargobike_provider.hooks.cargobike import CargobikeHook
from conftest import connect


def test_airflow_finds_the_provider_and_what_it_brings() -> None:
    manager = ProvidersManager()
    assert "airflow-provider-cargobike" in manager.providers
    hook = manager.hooks["cargobike"]
    assert hook is not None
    assert hook.hook_class_name == "cargobike_provider.hooks.cargobike.CargobikeHook"
    assert "cargobike" in manager.asset_uri_handlers
    behaviour = manager.field_behaviours["cargobike"]
    assert behaviour["relabeling"]["host"] == "Project"


def test_every_module_that_is_announced_is_there() -> None:
    info = get_provider_info()
    names = [name for room in ("operators", "sensors", "hooks", "triggers") for name in info[room][0]["python-modules"]]
    assert len(names) == 8
    for name in names:
        importlib.import_module(name)


def test_a_connection_is_tested_by_looking_at_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_there, words = CargobikeHook().test_connection()
    assert is_there, words
    assert f"{project} has 0 experiments" in words
    connect(monkeypatch, project.with_name("elsewhere"))
    is_there, words = CargobikeHook().test_connection()
    assert not is_there
    assert "There is no project" in words


def test_mistakes_in_a_connection_are_said_together(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, project, paths="/code", environment=["A=b"])
    is_there, words = CargobikeHook().test_connection()
    assert not is_there
    assert "paths='/code'" in words
    assert "environment" in words
    connect(monkeypatch, "")
    assert "names no project" in CargobikeHook().test_connection()[1]


def test_a_token_is_shown_nowhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, project, environment={"AWS_SECRET_ACCESS_KEY": "hush"})
    settings = CargobikeHook().settings()
    assert settings.variables["AWS_SECRET_ACCESS_KEY"] == "hush"
    assert "hush" not in repr(settings)
    assert "hush" not in " ".join(settings.command)


def test_what_the_guide_shows_are_dags() -> None:
    page = Path(__file__).parents[3] / "docs" / "guides" / "airflow.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    assert len(blocks) == 2
    outlets = [outlet.uri for outlet in names["register"].outlets]
    assert outlets == ["cargobike://cargobike_default/model/digits"]
    assert names["search"].upstream_task_ids == {"features"}


def test_addresses_of_assets_have_one_form() -> None:
    assert create_asset(kind="model", name="digits").uri == "cargobike://cargobike_default/model/digits"
    assert Asset("cargobike://team/Model/digits/").uri == "cargobike://team/model/digits"


@pytest.mark.parametrize(
    "wrong", ["cargobike://team/modle/digits", "cargobike://team/model", "cargobike://team/model/a/b"]
)
def test_an_address_that_means_nothing_is_refused(wrong: str) -> None:
    from urllib.parse import urlsplit

    from cargobike_provider.assets.cargobike import sanitize_uri

    with pytest.raises(ValueError, match=r"write cargobike://CONNECTION/KIND/NAME"):
        sanitize_uri(urlsplit(wrong))
