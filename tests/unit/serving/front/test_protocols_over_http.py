"""One front and one replica, asked over HTTP in every protocol."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from support.served import Deployment, post, serving


@pytest.fixture(scope="module")
def double() -> Iterator[Deployment]:
    """A deployment whose model doubles numbers."""
    with serving("double") as deployment:
        yield deployment


def test_a_row_gets_its_answer_and_a_list_gets_a_list(double: Deployment) -> None:
    assert post(double, "/predict", 2.5).json() == 5.0
    assert post(double, "/predict", [1, 2.5]).json() == [2.0, 5.0]


def test_kserve_v1_takes_instances(double: Deployment) -> None:
    assert post(double, "/v1/models/shop:predict", {"instances": [1, 2]}).json() == {"predictions": [2.0, 4.0]}
    assert httpx.get(f"{double.url}/v1/models/shop").json() == {"name": "shop", "ready": True}


def test_open_inference_takes_tensors(double: Deployment) -> None:
    tensor = {"name": "x", "shape": [2], "datatype": "FP64", "data": [1, 2]}
    answer = post(double, "/v2/models/shop/infer", {"id": "7", "inputs": [tensor]}).json()
    assert answer == {
        "model_name": "shop",
        "model_version": "1",
        "id": "7",
        "outputs": [{"name": "y", "shape": [2], "datatype": "FP64", "data": [2.0, 4.0]}],
    }
    assert post(double, "/v2/models/shop/versions/1/infer", {"inputs": [tensor]}).status_code == 200


def test_health_and_metadata(double: Deployment) -> None:
    def look(path: str) -> httpx.Response:
        return httpx.get(f"{double.url}{path}")

    assert look("/healthz").json() == {"status": "ok"}
    assert look("/v2/health/live").status_code == 200
    assert look("/v2/health/ready").json() == {"ready": True}
    assert look("/v2/models/shop/ready").json() == {"ready": True}
    assert look("/v2/models/shop/versions/9/ready").status_code == 503
    assert look("/v2").json()["name"] == "cargobike"
    assert look("/v2/models/shop").json() == {
        "name": "shop",
        "versions": ["1"],
        "platform": "cargobike",
        "inputs": [{"name": "x", "datatype": "FP64", "shape": [-1]}],
        "outputs": [{"name": "y", "datatype": "FP64", "shape": [-1]}],
    }


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/predict", ["a", 1], 422, "row 0, field 'x': \"a\" was given; a number (FP64) is needed"),
        ("/predict", b"NaN", 400, "not JSON"),
        ("/predict", b"1e999", 400, "not JSON"),
        ("/predict", [], 422, "at least one"),
        ("/predict", b"", 400, "not JSON"),
        ("/v1/models/shop:predict", {"rows": []}, 422, "instances"),
        ("/v1/models/sop:predict", {"instances": [1]}, 404, "Did you mean 'shop'"),
        ("/v2/models/shop/versions/4/infer", {"inputs": []}, 422, "no inputs"),
        ("/v2/models/shop/versions/x/infer", {"inputs": []}, 404, "versions are numbers"),
        ("/nowhere", 1, 405, "GET"),
    ],
)
def test_mistakes_are_named(double: Deployment, path: str, body: object, status: int, words: str) -> None:
    answer = post(double, path, body)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_metrics_count_answers(double: Deployment) -> None:
    post(double, "/predict", 1)
    text = httpx.get(f"{double.url}/metrics").text
    assert 'cargobike_replicas{deployment="shop",version="1"} 1' in text
    assert 'cargobike_request_seconds_count{deployment="shop",version="1"}' in text
