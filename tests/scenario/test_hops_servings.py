"""Servings of hops with processes: a script, a SavedModel of TensorFlow, and requests to both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from cargobike import project, serving
from cargobike.compat.hops import model
from cargobike.compat.hops import serving as servings
from support.scripts import environment

SCRIPT = """
    import os


    class Predict:
        def __init__(self):
            with open(os.path.join(os.environ["MODEL_FILES_PATH"], "factor.txt")) as file:
                self.factor = float(file.read())

        def predict(self, inputs):
            return [self.factor * row[0] for row in inputs]

        def classify(self, inputs):
            return ["even" if row[0] % 2 == 0 else "odd" for row in inputs]

        def regress(self, inputs):
            raise ValueError("no regression here")
"""

TENSORFLOW = """
    import glob
    import json
    import sys

    import pandas as pd
    import tensorflow as tf

    from cargobike import project
    from cargobike.compat.hops import featurestore, model, serving

    project.use("Football")
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "label": [1, 3, 5], "town": ["a", "b", "c"], "v": [[1.0, 2.0]] * 3})
    featurestore.create_training_dataset(frame, "line")
    files = glob.glob(featurestore.get_training_dataset_path("line") + "/part-r-*")
    schema = featurestore.get_training_dataset_tf_record_schema("line")
    rows = [tf.io.parse_single_example(record, schema) for record in tf.data.TFRecordDataset(files)]
    assert [float(row["x"]) for row in rows] == [0.0, 1.0, 2.0]
    assert [int(row["label"]) for row in rows] == [1, 3, 5]
    assert [row["v"].numpy().tolist() for row in rows] == [[1.0, 2.0]] * 3
    assert featurestore.get_dataframe_tf_record_schema(frame)["town"].dtype == tf.string


    class Line(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32, name="x")])
        def __call__(self, x):
            return {"y": 2.0 * x + 1.0}


    line = Line()
    tf.saved_model.save(line, "line/1", signatures={"serving_default": line.__call__})
    path = model.export("line/1", "line", metrics={"error": 0.0})
    serving.create_or_update(path.rpartition("/")[0], "line", serving_type="TENSORFLOW", model_version=1)
    serving.start("line")
    try:
        assert serving.get_status("line") == "Running"
        request = {"signature_name": "serving_default", "instances": [[1.0], [2.0]]}
        answer = serving.make_inference_request("line", request)
    finally:
        serving.delete("line")
    print(json.dumps(answer))
"""


def test_a_script_is_served_until_it_is_stopped(tmp_path: Path) -> None:
    project.use(tmp_path / "Football")
    folder = tmp_path / "doubling"
    folder.mkdir()
    (folder / "factor.txt").write_text("2")
    (folder / "doubling.py").write_text(textwrap.dedent(SCRIPT))
    path = model.export(str(folder), "Doubling").rpartition("/")[0]
    servings.create_or_update("doubling", path, "PYTHON", predictor="doubling.py")
    servings.start("doubling")
    try:
        servings.start("doubling")  # which is no mistake
        assert servings.get_status("doubling") == "Running"
        assert servings.make_inference_request("doubling", {"inputs": [[1], [4]]}) == {"predictions": [2.0, 8.0]}
        answer = servings.make_inference_request("doubling", {"instances": [[3]]}, ":classify")
        assert answer == {"predictions": ["odd"]}
        (folder / "factor.txt").write_text("3")
        model.export(str(folder), "Doubling")
        servings.create_or_update("doubling", path, "PYTHON", 2, predictor="doubling.py")
        assert servings.make_inference_request("doubling", {"inputs": [[1]]}) == {"predictions": [3.0]}
        assert servings.get_version("doubling") == 2
        servings.stop("doubling")
        assert servings.get_status("doubling") == "Stopped"
        assert len(serving.read_log("doubling")) == 3
    finally:
        servings.delete("doubling")
    assert not servings.exists("doubling")


def test_a_saved_model_is_served(tmp_path: Path) -> None:
    (tmp_path / "line.py").write_text(textwrap.dedent(TENSORFLOW))
    variables = {**environment(), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "line.py"],
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"predictions": [[3.0], [5.0]]}
