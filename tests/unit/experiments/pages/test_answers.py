"""Answers of the API hold what their shapes say, no more and no less."""

from __future__ import annotations

import typing
from collections.abc import Iterator

import pydantic
import pytest
from starlette.testclient import TestClient

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.pages import answers
from cargobike.experiments.results.comparison import Comparison
from cargobike.ui.answers import Answer
from cargobike.ui.web.answering import model_of
from support.web_project import HOSTILE_ID, LIVELY, client_of, sample_project

ONE = f"experiments/{LIVELY}"
SHAPES: dict[str, type[Answer]] = {
    "experiments": answers.ExperimentPage,
    ONE: answers.ExperimentDetail,
    f"experiments/{HOSTILE_ID}": answers.ExperimentDetail,
    f"{ONE}/trials?limit=1000": answers.TrialPage,
    f"experiments/{HOSTILE_ID}/trials": answers.TrialPage,
    f"{ONE}/trials/3": answers.TrialDetail,
    f"{ONE}/trials/3/metrics": answers.MetricsAnswer,
    f"{ONE}/trials/3/logs/stdout": answers.LogPart,
    f"{ONE}/files": answers.FolderAnswer,
    f"{ONE}/figures": answers.FigureList,
    f"{ONE}/figures/slices": answers.Figure,
    f"{ONE}/trials/3/figures/curves": answers.Figure,
    f"compare/trials?trial={LIVELY}/0&trial={HOSTILE_ID}/1": answers.ComparedTrials,
    f"compare/experiments?first={LIVELY}&second={HOSTILE_ID}": answers.ComparedExperiments,
    f"compare/figures/best-so-far?experiment={LIVELY}": answers.Figure,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectFolder:
    return sample_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def client(project: ProjectFolder) -> Iterator[TestClient]:
    with client_of(project) as found:
        yield found


def mistakes(told: object, hint: object, where: str = "") -> Iterator[str]:
    """Yield every place in which an answer has other fields than its shape."""
    if isinstance(hint, type) and issubclass(hint, Answer):
        assert isinstance(told, dict), where
        if set(told) != set(hint.__struct_fields__):
            yield f"{where}: {sorted(set(told) ^ set(hint.__struct_fields__))}"
        for name, inner in typing.get_type_hints(hint).items():
            yield from mistakes(told.get(name), inner, f"{where}.{name}")
    elif typing.get_origin(hint) is list and isinstance(told, list):
        for each in told:
            yield from mistakes(each, typing.get_args(hint)[0], f"{where}[]")
    elif told is not None and type(None) in typing.get_args(hint):
        yield from mistakes(told, typing.get_args(hint)[0], where)


@pytest.mark.parametrize("path", SHAPES)
def test_an_answer_is_what_its_shape_says(client: TestClient, path: str) -> None:
    response = client.get(f"/api/v1/{path}")
    assert response.status_code == 200
    told, shape = response.json(), SHAPES[path]
    model_of(shape).model_validate(told)
    assert list(mistakes(told, shape)) == []


def test_an_answer_with_another_shape_would_be_noticed(client: TestClient) -> None:
    told = client.get(f"/api/v1/{ONE}").json()
    del told["best"]["params"]
    assert list(mistakes(told, answers.ExperimentDetail)) == [".best: ['params']"]
    with pytest.raises(pydantic.ValidationError, match="params"):
        model_of(answers.ExperimentDetail).model_validate(told)


def test_every_documented_path_answers_with_a_shape_of_ours(client: TestClient) -> None:
    document = client.get("/api/v1/openapi.json").json()
    shapes = {name for name in document["components"]["schemas"] if hasattr(answers, name)}
    assert {"ExperimentPage", "ExperimentDetail", "TrialPage", "TrialDetail", "Figure", "Stopping"} <= shapes


def test_a_comparison_is_told_whole() -> None:
    assert set(answers.ComparedExperiments.__struct_fields__) == set(Comparison.__struct_fields__)
