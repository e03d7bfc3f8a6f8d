"""The start page's cards and search: what products register, kept, and never waited for."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import APIRouter
from starlette.responses import Response
from starlette.testclient import TestClient

from cargobike.core.errors import StillReadingError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.app import create_app
from cargobike.ui.web.overview.cards import Card, Entry, Glance
from cargobike.ui.web.overview.refreshed import Lately, Refreshed
from cargobike.ui.web.overview.searching import Document, Search
from cargobike.ui.web.section import Section
from cargobike.ui.web.state import ServerState
from support.sample_records import HOSTILE
from support.web_project import ADDRESS, LIVELY, RUNNING, client_of, sample_project

PATIENCE_S = 30.0


def _card(name: str, look: Callable[[], Glance]) -> Card:
    return Card(
        name=name,
        title=name.title(),
        address=f"/{name}",
        place=1,
        look=look,
        empty=f"No {name} yet.",
        command=f"make {name}",
    )


def _client(root: Path, *cards: Card) -> TestClient:
    section = Section(name="garden", package="cargobike.data.pages", cards=cards)
    return TestClient(create_app(ServerState.of(ProjectFolder(root)), [section]), base_url=ADDRESS)


def test_a_card_shows_what_goes_on_and_what_to_do_next(tmp_path: Path) -> None:
    def look() -> Glance:
        entry = Entry(HOSTILE, "/roses/1", "running", "3 of 4 <b>", "2026-11-18T04:00:00", 0.75)
        return Glance([entry], 1, "rose grows", is_urgent=True, total=12)

    with _client(tmp_path, _card("roses", look), _card("weeds", Glance)) as client:
        page = client.get("/").text
    assert "<b>1</b> rose grows" in page
    assert 'value="0.750"' in page
    assert HOSTILE not in page
    assert "<b>" not in page.partition("3 of 4 ")[2][:10]
    assert "No weeds yet." in page
    assert "make weeds" in page


def test_a_card_that_fails_or_takes_long_keeps_nothing_else_away(tmp_path: Path) -> None:
    may_go_on = threading.Event()

    def fail() -> Glance:
        raise StoreError("The shed is locked.")

    def break_down() -> Glance:
        raise ZeroDivisionError

    def dawdle() -> Glance:
        may_go_on.wait(PATIENCE_S)
        return Glance([Entry("late", "/late")])

    cards = [_card("shed", fail), _card("tools", break_down), _card("slow", dawdle), _card("weeds", Glance)]
    with _client(tmp_path, *cards) as client:
        page = client.get("/").text
        assert "The shed is locked." in page
        assert "This cannot be read: ZeroDivisionError()" in page
        assert "data-unread" in page
        assert "No weeds yet." in page
        may_go_on.set()
        deadline = time.monotonic() + PATIENCE_S
        while "/late" not in client.get("/?fragment=true").text and time.monotonic() < deadline:
            pass
        assert "/late" in client.get("/?fragment=true").text


def test_an_answer_is_kept_while_it_is_new() -> None:
    calls = itertools.count(1)
    kept = Refreshed(lambda: next(calls), rest_s=1000)
    for _ in range(3):
        assert kept.wait(PATIENCE_S)
    assert (kept.last, kept.problem) == (1, "")
    old = Refreshed(lambda: next(calls), rest_s=0.0)
    old._rest_until = 0.0
    assert old.wait(PATIENCE_S)
    assert old.last == 2


def _search(*documents: Document) -> Search:
    return Search({"garden": lambda: iter(documents)})


def test_names_come_before_tags_before_columns_before_descriptions() -> None:
    found = _search(
        Document("table", "soil", "/4", text="about roses", at=9),
        Document("table", "beds", "/3", columns=["roses", "x"], at=9),
        Document("table", "tagged", "/2", tags=["roses"], at=9),
        Document("model", "wild roses", "/1b", at=9),
        Document("model", "roses2", "/1a", at=9),
        Document("model", "Roses", "/0", at=1),
        Document("model", "nettles", "/no"),
    ).find("ROSES", patience_s=PATIENCE_S)
    assert [(hit.document.address, hit.where) for hit in found.hits] == [
        ("/0", "name"),
        ("/1a", "name"),
        ("/1b", "name"),
        ("/2", "tag"),
        ("/3", "column"),
        ("/4", "description"),
    ]
    assert (found.kinds, found.total, found.is_complete) == ({"model": 3, "table": 3}, 6, True)


def test_all_words_must_fit_and_of_equals_the_newest_comes_first() -> None:
    search = _search(
        Document("run", "b", "/old", text="red rose", at=1),
        Document("run", "a", "/new", text="rose, red", at=2),
        Document("run", "c", "/no", text="red", at=3),
    )
    assert [hit.document.address for hit in search.find("red ROSE", patience_s=PATIENCE_S).hits] == ["/new", "/old"]
    page = search.find("", offset=1, limit=1)
    assert ([hit.document.address for hit in page.hits], page.total) == (["/new"], 3)
    assert search.find("red", kind="model").total == 0


def test_everything_of_a_project_is_found_by_the_api_and_the_page(tmp_path: Path) -> None:
    with client_of(sample_project(tmp_path)) as client:
        deadline = time.monotonic() + PATIENCE_S
        while not client.get("/api/v1/search").json()["is_complete"] and time.monotonic() < deadline:
            pass
        hits = client.get("/api/v1/search", params={"q": RUNNING}).json()["hits"]
        assert [(hit["kind"], hit["page"]) for hit in hits] == [("experiment", f"/experiments/{RUNNING}")]
        page = client.get("/search", params={"q": LIVELY}).text
        assert f'href="/experiments/{LIVELY}"' in page
        hostile = client.get("/search", params={"q": HOSTILE[:150]}).text
        assert HOSTILE[:150] not in hostile
        assert client.get("/api/v1/search", params={"q": "x" * 201}).status_code == 422


@pytest.mark.parametrize("query", ["state=running", "q=lively&sort=name"])
def test_addresses_of_the_list_of_experiments_still_lead_there(tmp_path: Path, query: str) -> None:
    with client_of(sample_project(tmp_path)) as client:
        answer = client.get(f"/?{query}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/experiments?{query}")


def test_a_list_is_new_while_it_is_quick_and_kept_when_it_is_not() -> None:
    numbers, goes_on = itertools.count(), threading.Event()
    goes_on.set()

    def make() -> int:
        goes_on.wait(PATIENCE_S)
        return next(numbers)

    lately = Lately(make, quick_s=60.0)
    assert [lately.get(), lately.get()] == [0, 1]
    slow = Lately(make, quick_s=0.0)  # everything takes longer
    assert slow.get() == 2
    goes_on.clear()
    assert [slow.get(), slow.get()] == [2, 2]
    goes_on.set()
    give_up_at = time.monotonic() + PATIENCE_S
    while slow.get() == 2:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_a_list_that_was_slow_once_is_new_again_when_it_is_quick() -> None:
    numbers, is_slow = itertools.count(), [True]

    def make() -> int:
        if is_slow.pop() if is_slow else False:
            time.sleep(0.3)
        return next(numbers)

    lately = Lately(make, quick_s=0.2)
    assert lately.get() == 0
    seen = [lately.get() for _ in range(4)]
    assert seen == sorted(set(seen)), "each answer is newer than the one before"
    assert min(seen) > 0


def test_a_first_list_that_takes_long_is_not_waited_for_by_a_page(tmp_path: Path) -> None:
    goes_on = threading.Event()
    state = ServerState.of(ProjectFolder(tmp_path))
    router = APIRouter()

    @router.get("/garden")
    def garden() -> Response:
        return Response(state.lately("garden", lambda: str(goes_on.wait(PATIENCE_S))))

    section = Section(name="garden", package="cargobike.data.pages", pages=router)
    with TestClient(create_app(state, [section]), base_url=ADDRESS) as client:
        reading = client.get("/garden")
        assert (reading.status_code, reading.headers["retry-after"]) == (200, "1")
        assert 'http-equiv="refresh"' in reading.text
        goes_on.set()
        give_up_at = time.monotonic() + PATIENCE_S
        while client.get("/garden").text != "True":
            assert time.monotonic() < give_up_at


def test_a_first_list_that_cannot_be_made_says_why_to_each_caller() -> None:
    answers: list[str] = []

    def make() -> str:
        if not answers:
            raise StoreError("the disk is gone")
        return answers[0]

    lately = Lately(make)
    for _ in range(2):
        with pytest.raises(StoreError, match="the disk is gone") as caught:
            lately.get()
        assert not isinstance(caught.value, StillReadingError)
    answers.append("here")
    assert lately.get() == "here"
