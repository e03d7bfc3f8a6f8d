"""The list of experiments: ids that know more."""

from __future__ import annotations

import json
import pickle

import pytest

from cargobike import experiment, project
from cargobike.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.experiments.finding import find_experiment
from cargobike.experiments.results import listing
from cargobike.results import ExperimentState, ExperimentSummary, compare
from cargobike.testing.stores import JournalBuilder

FIRST, SECOND = "20270101-000000-aaaa", "20270102-000000-bbbb"


@pytest.fixture
def summaries() -> list[ExperimentSummary]:
    place = project.prepare()
    first = JournalBuilder(place, FIRST, name="digits")
    first.complete(value=0.5, lr=0.1)
    first.complete(value=0.9, lr=0.2)
    first.end()
    JournalBuilder(place, SECOND, name="mnist").let_go()
    return experiment.list()


def test_summaries_are_ids(summaries: list[ExperimentSummary]) -> None:
    assert summaries == [FIRST, SECOND]
    assert [summary.id for summary in summaries] == [FIRST, SECOND]
    assert type(summaries[0].id) is str
    assert json.dumps(summaries) == json.dumps([FIRST, SECOND])
    assert f"{summaries[0]}" == FIRST
    assert {FIRST: 1}[summaries[0]] == 1
    assert not project.current().index.exists(), "ids alone need no index"


def test_the_last_of_those_that_began_within_a_second_is_the_one_that_began_last() -> None:
    place = project.prepare()
    ids = [f"20270101-000000-{end}" for end in ("bbbb", "cccc", "aaaa")]
    for second, one in enumerate(ids):
        JournalBuilder(place, one, name="again", start_s=2e9 + second / 10).end()
    assert experiment.list() == ids
    assert find_experiment("last").id == find_experiment("again").id == ids[-1]


@pytest.mark.parametrize("has_index", [True, False])
def test_summaries_say_what_a_list_shows(
    summaries: list[ExperimentSummary], has_index: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("the database is away")

    if not has_index:
        monkeypatch.setattr(listing, "open_index", refuse)
    first, second = summaries
    assert (first.name, first.state, first.trials) == ("digits", ExperimentState.COMPLETED, 2)
    assert (first.best_value, first.best_params, first.best_trial) == (0.9, {"lr": 0.2}, 1)
    assert (first.counts, first.tags, first.reason, first.problem) == ({"completed": 2}, (), "", "")
    assert first.ended_at is not None
    assert first.duration_s == first.ended_at - first.started_at > 0
    assert (second.name, second.state, second.best_value) == ("mnist", "lost", None)
    assert second.ended_at is None
    assert repr(first) == f"ExperimentSummary('{FIRST}', name='digits', state='completed', best_value=0.9, trials=2)"


def test_an_experiment_that_has_hardly_begun_is_listed() -> None:
    folder = project.prepare().experiment(FIRST)
    folder.root.mkdir(parents=True)
    folder.journal.touch()
    (only,) = experiment.list()
    assert (only.name, only.state, only.trials) == ("", ExperimentState.LOST, 0)
    assert only.problem


def test_summaries_and_results_work_where_an_id_is_asked_for(summaries: list[ExperimentSummary]) -> None:
    result = experiment.load(summaries[0])
    assert result.id == FIRST
    assert experiment.load(result).id == FIRST
    assert find_experiment(summaries[1]).id == project.find_experiment(SECOND).id == SECOND
    assert compare(result, summaries[1]).results == compare(FIRST, find_experiment(SECOND)).results


def test_a_summary_survives_a_pickle(summaries: list[ExperimentSummary]) -> None:
    again = pickle.loads(pickle.dumps(summaries[0]))
    assert (again, again.name, type(again)) == (FIRST, "digits", ExperimentSummary)


def test_what_names_no_experiment_is_refused() -> None:
    for given in (5, None, [], object()):
        with pytest.raises(InvalidInputError, match="names no experiment; give an id"):
            experiment.load(given)  # type: ignore[arg-type]


def test_states_and_tags_that_there_are_not_are_refused(summaries: list[ExperimentSummary]) -> None:
    result = experiment.load(summaries[0])
    with pytest.raises(InvalidInputError, match=r"never 'complete'; .* Did you mean 'completed'"):
        result.of_state("complete")
    assert [trial.number for trial in result.of_state("completed")] == [0, 1]
    with pytest.raises(InvalidInputError, match="cannot be a tag: give texts"):
        result.add_tag(["baseline"])  # type: ignore[arg-type]
    assert result.tags == ()
    assert repr(result).startswith("<Result digits [")
    assert len(repr(result)) < 200
    with pytest.raises(InvalidInputError, match="by='hours'; allowed are 'trial' and 'time'"):
        result.plot.best_so_far(by="hours")  # type: ignore[arg-type]
    with pytest.raises(NotFoundError, match="There is no trial 77"):
        result.plot.trial_curves(77)
