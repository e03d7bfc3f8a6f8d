"""Maggy's trial: its id, its JSON."""

from __future__ import annotations

import pickle

import pytest

from cargobike.compat.maggy import Trial


def test_the_id_is_the_one_that_maggy_gave() -> None:
    trial = Trial({"param1": 5, "param2": "ada"})
    assert trial.trial_id == "3d1cc9fdb1d4d001"
    assert Trial({"param2": "ada", "param1": 5}).trial_id == trial.trial_id
    assert (trial.status, trial.early_stop, trial.final_metric) == (Trial.PENDING, False, None)


def test_an_ablation_is_told_apart_by_what_is_left_out() -> None:
    one = Trial({"ablated_feature": "a", "ablated_layer": "None", "model_function": print}, "ablation")
    same = Trial({"ablated_feature": "a", "ablated_layer": "None", "model_function": repr}, "ablation")
    other = Trial({"ablated_feature": "b", "ablated_layer": "None"}, "ablation")
    assert one.trial_id == same.trial_id != other.trial_id


def test_json_and_back() -> None:
    trial = Trial({"x": 1}, info_dict={"sample_type": "random"})
    assert trial.append_metric({"step": 0, "value": 0.5}) == 0
    assert trial.append_metric({"step": 0, "value": 0.7}) is None
    trial.status, trial.final_metric = Trial.FINALIZED, 0.0
    trial.set_early_stop()
    again = Trial.from_json(trial.to_json())
    assert (again.trial_id, again.status, again.final_metric) == (trial.trial_id, "FINALIZED", 0.0)
    assert (again.metric_history, again.get_early_stop()) == ([0.5], True)
    assert pickle.loads(pickle.dumps(trial)).trial_id == trial.trial_id


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="need to be a dictionary"):
        Trial([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="have to be strings"):
        Trial({1: 2})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="not a Trial"):
        Trial.from_json('{"params": {"a": 1}}')
