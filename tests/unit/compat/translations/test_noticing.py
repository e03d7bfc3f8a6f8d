"""Notices say once what an older call is called here."""

from __future__ import annotations

import pytest

from cargobike.compat import noticing
from cargobike.compat.maggy import names
from cargobike.compat.noticing import formerly, notice
from cargobike.compat.translations import Translation, as_table
from cargobike.core import settings


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.COMPAT_QUIET, raising=False)
    monkeypatch.setattr(noticing, "_told", set())
    monkeypatch.setattr(
        names, "TRANSLATIONS", (Translation("maggy.old", "cargobike.new"), Translation("maggy.gone", ""))
    )


def test_a_call_gives_its_notice_once(capsys: pytest.CaptureFixture[str]) -> None:
    @formerly("maggy.old")
    def twice(number: int) -> int:
        return 2 * number

    assert twice(2) == 4
    assert twice(3) == 6
    assert capsys.readouterr().err == "cargobike: maggy.old is called cargobike.new here\n"


def test_nothing_is_said_where_there_is_no_name_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    notice("maggy.gone")
    assert capsys.readouterr().err == ""


def test_workers_are_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(settings.COMPAT_QUIET, "1")
    notice("maggy.old")
    assert capsys.readouterr().err == ""


def test_a_table_shows_what_is_missing() -> None:
    table = as_table(names.TRANSLATIONS)
    assert "| `maggy.old` | `cargobike.new` |  |" in table
    assert "| `maggy.gone` | – |  |" in table
