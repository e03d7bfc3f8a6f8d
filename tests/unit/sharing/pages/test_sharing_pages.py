"""The pages of sharing and the answers behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from cargobike import data, project, sharing
from cargobike.core.registering.tracing import Thing, all_edges, page_of
from cargobike.sharing.daemon.serving import Daemon
from cargobike.sharing.front import open_catalogue
from cargobike.sharing.network.network import make_network
from cargobike.sharing.pages.answers import HolderList, NetworkDetails, NetworkList, PublicationDetails
from cargobike.sharing.records import sign
from cargobike.ui.web.answering import model_of
from support.publications import identity_of, opinion, signed_manifest
from support.web_project import client_of

HOSTILE = "<script>alert(1)</script>"
ALICE, BOB = identity_of("alice"), identity_of("bob")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("project")
    project.use(folder)
    data.write({"x": [1, 2, 3]}, "numbers")
    sharing.publish("numbers", "table:numbers", network="lab", description="Three of them", yes=True)
    with open_catalogue("lab") as catalogue:
        catalogue.add(signed_manifest(ALICE, 1, description=HOSTILE, tags=(HOSTILE,), sample=({"label": HOSTILE},)))
        catalogue.add(signed_manifest(ALICE, 2, version=2, description=HOSTILE))
        catalogue.add(sign(opinion(BOB, ALICE, 1, text=HOSTILE), BOB))
        catalogue.trust(ALICE.publisher, "alice")
    yield folder
    project.use(None)


@pytest.fixture
def client(root: Path) -> TestClient:
    project.use(root)
    return client_of(project.current())


def test_networks_are_listed_with_the_projects_key(client: TestClient) -> None:
    answer = client.get("/api/v1/sharing").json()
    model_of(NetworkList).model_validate(answer)
    assert [(one["name"], one["publications"], one["is_served"]) for one in answer["networks"]] == [("lab", 3, False)]
    page = client.get("/sharing").text
    assert answer["publisher"] in page
    assert '<a href="/sharing" aria-current="page">Sharing</a>' in page


def test_publications_are_found_by_words_tag_and_publisher(client: TestClient) -> None:
    def found(**asked: str) -> list[str]:
        answer = client.get("/api/v1/sharing/lab", params=asked).json()
        model_of(NetworkDetails).model_validate(answer)
        return [one["reference"].partition("@")[0] for one in answer["publications"]]

    assert found() == ["higgs", "numbers"]
    assert found(words="three") == ["numbers"]
    assert found(publisher="alice") == ["higgs"]
    assert found(column="x") == ["numbers"]
    assert found(kind="model") == []
    assert found(max_size="2999") == ["numbers"]
    assert found(min_size="3000") == ["higgs"]
    assert client.get("/api/v1/sharing/lab", params={"publisher": "zoe"}).status_code == 404
    assert client.get("/api/v1/sharing/other").status_code == 404
    assert not (project.current().root / "sharing" / "networks" / "other").exists()


def test_pages_show_what_publishers_wrote_as_text(client: TestClient) -> None:
    for address in ("/sharing/lab", "/sharing/lab/publications/higgs?version=1", "/sharing/lab?words=alert"):
        page = client.get(address).text
        assert HOSTILE not in page, address
        assert "alert(1)" in page, address


def test_one_publication_has_everything_that_is_known(client: TestClient) -> None:
    answer = client.get("/api/v1/sharing/lab/publications/higgs").json()
    model_of(PublicationDetails).model_validate(answer)
    assert (answer["publication"]["version"], answer["versions"]) == (2, [2, 1])
    assert [(one["rating"], one["text"]) for one in answer["opinions"]] == [(4, HOSTILE)]
    mine = client.get("/api/v1/sharing/lab/publications/numbers").json()
    assert mine["publication"]["is_here"]
    assert mine["places"] == [data.open("numbers").url]
    assert mine["sample"] == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_a_daemon_that_does_not_run_cannot_be_paused(client: TestClient) -> None:
    headers = {"Content-Type": "application/json", "X-Cargobike": "1"}
    answer = client.post("/api/v1/sharing/lab/pause", headers=headers, content="{}")
    assert answer.status_code == 404
    assert "cargobike share serve" in answer.text
    assert client.post("/api/v1/sharing/lab/pause").status_code in {403, 415}


def test_a_daemon_obeys_limits_and_says_who_has_what(client: TestClient) -> None:
    headers = {"Content-Type": "application/json", "X-Cargobike": "1"}
    holders = "/api/v1/sharing/lab/publications/numbers/holders"
    assert client.get(holders).status_code == 404, "no daemon runs"

    def limit(query: str) -> int:
        answer = client.post(f"/api/v1/sharing/lab/limits?{query}", headers=headers, content="{}")
        return int(answer.status_code)

    with Daemon(project.current(), make_network("lab", secret="the secret of the lab")) as daemon:
        key = ALICE.publisher
        hours = "mon-fri 08:00-18:00 send=2MB/s"
        assert limit(f"send=20MB/s&member={key}%3D1MB/s&hours={hours}&gives_way=false") == 200
        limits = daemon.status().limits
        assert (limits.send, limits.peers, limits.hours, limits.gives_way) == (
            "20MB/s",
            {key: "1MB/s"},
            (hours,),
            False,
        )
        assert limit("send=quick") == limit("member=nonsense") == limit("hours=sometimes") == 422
        daemon.membership.book.hear("127.0.0.1:1")
        answer = client.get(holders).json()
        model_of(HolderList).model_validate(answer)
        assert [(one["address"], one["share"]) for one in answer["holders"]] == [("127.0.0.1:1", 0.0)]
        assert "refused" in answer["holders"][0]["problem"]
        assert client.get("/api/v1/sharing/lab/publications/nothing/holders").status_code == 404
        assert "Send at most" in client.get("/sharing/lab").text


def test_lineage_leads_from_a_publication_to_its_table(client: TestClient) -> None:
    (edge,) = [one for one in all_edges(project.current()) if one.made.kind == "publication"]
    assert edge.source == Thing("table", "numbers", "1")
    page = client.get(page_of(edge.made), follow_redirects=True)
    assert "numbers:1" in page.text
