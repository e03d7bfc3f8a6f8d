"""The tables of old and new calls are those that notices and `cargobike migrate` go by."""

from __future__ import annotations

import pytest

from cargobike.compat.translations import LIBRARIES, translations_of
from support.translation_tables import pages, with_tables


def test_tables_are_up_to_date() -> None:
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages()}
    stale = [name for name, text in texts.items() if with_tables(text) != text]
    assert stale == [], "run `make translation-tables`, or python tests/support/translation_tables.py"


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_each_old_call_is_listed_once(library: str) -> None:
    old = [one.old for one in translations_of(library)]
    assert len(old) == len(set(old))
    assert {name.partition(".")[0] for name in old} <= set(LIBRARIES)


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_what_has_no_new_call_says_why(library: str) -> None:
    assert [one.old for one in translations_of(library) if not one.new and not one.remark] == []
    assert [one.old for one in translations_of(library) if one.same and not one.new] == []
