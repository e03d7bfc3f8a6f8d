"""A tutorial of Hopsworks from end to end: groups, a view, a split, a model, a deployment; only the import is ours."""

from __future__ import annotations

import os
import pickle
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from cargobike import features, models, project
from cargobike.compat import hopsworks

SCRIPT = """
    import os

    import hopsworks
    import joblib
    import numpy as np


    class Predict:
        def __init__(self, async_logger, model):
            project = hopsworks.login()
            kept = project.get_model_registry().get_model("cardfraud", version=1)
            self.view = kept.get_feature_view()
            self.model = joblib.load(os.environ["MODEL_FILES_PATH"] + "/tree.pkl")

        def predict(self, inputs):
            vector = self.view.get_feature_vector({"cc_num": inputs[0][0]})
            return self.model.predict(np.asarray(vector[2:], dtype=float).reshape(1, -1)).tolist()
"""


def transactions() -> pd.DataFrame:
    """Return 400 transactions of 20 cards, of which the large ones abroad are fraud."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "cc_num": np.arange(400) % 20,
            "datetime": pd.date_range("2022-01-01", periods=400, freq="6h"),
            "Amount": rng.uniform(1, 100, 400).round(2),
            "country": rng.choice(["SE", "DE", "US"], 400),
        }
    )
    frame["fraud_label"] = ((frame["Amount"] > 60) & (frame["country"] == "US")).astype(int)
    return frame


def test_from_rows_to_predictions(tmp_path: Path) -> None:
    project.use(tmp_path / "fraud")
    frame = transactions()
    store = hopsworks.login().get_feature_store()
    trans = store.get_or_create_feature_group(
        name="transactions", version=1, primary_key=["cc_num"], event_time="datetime", online_enabled=True
    )
    trans.insert(frame)
    people = store.get_or_create_feature_group(
        name="people", version=1, primary_key=["cc_num"], online_enabled=True, description="Who has a card"
    )
    people.insert(pd.DataFrame({"cc_num": range(20), "age": np.arange(20) + 30}), write_options={"wait_for_job": True})

    query = trans.select_all().join(people.select_all(include_primary_key=False))
    label_encoder = store.get_transformation_function(name="label_encoder")
    view = store.get_or_create_feature_view(
        name="fraud",
        version=1,
        query=query,
        labels=["fraud_label"],
        transformation_functions=[label_encoder("country")],
    )
    X_train, X_test, y_train, y_test = view.train_test_split(
        train_start="2022/01/01", train_end="2022/03/10", test_start="2022/03/10", test_end="2022/04/30"
    )
    assert (len(X_train), len(X_test)) == (272, 128)
    assert X_train["datetime"].max() < pd.Timestamp("2022-03-10", tz="UTC") <= X_test["datetime"].min()
    assert list(X_train.columns) == ["cc_num", "datetime", "amount", "country", "age"]
    tree = DecisionTreeClassifier(random_state=0).fit(X_train.drop(columns=["cc_num", "datetime"]).values, y_train)
    accuracy = tree.score(X_test.drop(columns=["cc_num", "datetime"]).values, y_test)
    assert accuracy > 0.95

    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "tree.pkl").write_bytes(pickle.dumps(tree))
    registry = hopsworks.login().get_model_registry()
    model = registry.sklearn.create_model(
        "cardfraud", metrics={"accuracy": accuracy}, input_example=[3], feature_view=view, description="Fraud"
    )
    model.save(str(folder))
    assert model.version == 1
    assert registry.get_best_model("cardfraud", "accuracy", "max").version == 1
    sources = {(one.kind, one.name) for one in models.get("cardfraud:1").sources}
    assert sources == {("view", "fraud"), ("dataset", "fraud_1")}

    script = tmp_path / "predict_example.py"
    script.write_text(textwrap.dedent(SCRIPT))
    files = hopsworks.login().get_dataset_api()
    uploaded = files.upload(str(script), "Models", overwrite=True)
    deployment = model.deploy(
        name="frauddeployment", script_file=os.path.join("/Projects", hopsworks.login().name, uploaded)
    )
    assert deployment.get_state().status == "CREATED"
    deployment.start(await_running=300)
    try:
        assert deployment.is_running()
        newest = frame.sort_values("datetime").groupby("cc_num").tail(1).set_index("cc_num")["fraud_label"]
        answers = {card: deployment.predict(inputs=[card])["predictions"][0] for card in range(20)}
        assert answers == newest.to_dict()
        assert hopsworks.login().get_model_serving().get_deployment("frauddeployment").is_running()
    finally:
        deployment.stop()
    assert deployment.get_state().status == "STOPPED"
    deployment.delete()
    assert [group.name for group in features.list_groups()] == ["people", "transactions"]
