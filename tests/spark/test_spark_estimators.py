"""Train functions as estimators of pyspark.ml: fitted, in pipelines, searched, saved and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import DataFrame, SparkSession

from cargobike import experiment
from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Resources
from cargobike.spark import Estimator, Model, trusting
from support.price_functions import predict, predict_from_file, train, train_file

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def frame(spark_applications: SparkApplications) -> DataFrame:
    session = SparkSession(spark_applications.context(), options={"spark.sql.shuffle.partitions": "2"})
    rows = session.range(200, numPartitions=3).selectExpr("id", "id / 100 as a", "cast(id % 7 as double) as b")
    return rows.selectExpr("*", "3 * a - b + 1 as y")


def worst(frame: DataFrame, column: str = "prediction") -> float:
    return float(max(abs(row.y - row[column]) for row in frame.collect()))


def worst_from(value: float, frame: DataFrame) -> float:
    return float(max(abs(row.prediction - value) for row in frame.collect()))


def test_it_is_fitted_on_executors_and_predicts_there(frame: DataFrame) -> None:
    estimator = Estimator(train, predict, columns=["a", "b", "y"], predictionCol="guess", resources=Resources(gpus=0))
    model = estimator.fit(frame, {estimator.alpha: 0.0001})
    answered = model.transform(frame)
    assert answered.columns == ["id", "a", "b", "y", "guess"]
    assert worst(answered, "guess") < 0.01
    assert answered.count() == 200
    kept = experiment.load(model.experiment)
    assert kept.trials[0].params == {"alpha": 0.0001}
    assert kept.value == model.value


def test_pipelines_are_fitted_saved_and_loaded_by_those_who_trust(frame: DataFrame, tmp_path: Path) -> None:
    estimator = Estimator(train, predict, columns=["a", "b", "y"], output="double", engine="local", alpha=0.0001)
    pipeline = Pipeline(stages=[estimator])
    fitted = pipeline.fit(frame)
    before = fitted.transform(frame).collect()
    fitted.save(str(tmp_path / "fitted"))
    pipeline.save(str(tmp_path / "pipeline"))
    with pytest.raises(InvalidInputError, match=r"functions or pickles, which can run any code(.|\n)*trust=True"):
        PipelineModel.load(str(tmp_path / "fitted"))
    with pytest.raises(InvalidInputError, match=r"Estimator\.load\(path, train=train, predict=predict\)"):
        Pipeline.load(str(tmp_path / "pipeline"))
    with trusting():
        again = PipelineModel.load(str(tmp_path / "fitted"))
        unfitted = Pipeline.load(str(tmp_path / "pipeline"))
    assert again.transform(frame).collect() == before
    (stage,) = unfitted.getStages()
    assert (stage.getOrDefault("alpha"), stage.columns, stage.engine) == (0.0001, ["a", "b", "y"], "local")
    assert worst(unfitted.fit(frame).transform(frame)) < 0.01


def test_a_model_of_files_needs_no_trust_if_its_function_is_given(frame: DataFrame, tmp_path: Path) -> None:
    model = Estimator(train_file, predict_from_file, output="double", engine="local").fit(frame)
    mean = frame.selectExpr("avg(y)").first()[0]
    assert worst_from(mean, model.transform(frame)) < 1e-9
    path = str(tmp_path / "model")
    model.save(path)
    (file,) = (tmp_path / "model" / "state").rglob("model.txt")
    assert float(file.read_text()) == pytest.approx(mean)
    with pytest.raises(InvalidInputError, match=r"Or give the function: Model\.load\(path, predict=predict\)"):
        Model.load(path)
    again = Model.load(path, predict=predict_from_file)
    assert (again.uid, again.experiment, again.value) == (model.uid, model.experiment, 0.0)
    assert worst_from(mean, again.transform(frame)) < 1e-9
    with pytest.raises(InvalidInputError, match=r"holds a cargobike\.spark\.Model, and no cargobike\.spark\.Estimator"):
        Estimator.load(path, trust=True)
    with pytest.raises(Exception, match="already exists"):
        model.save(path)
    model.write().overwrite().save(path)


def test_vectors_become_arrays_and_parameters_are_searched(frame: DataFrame) -> None:
    def fit_vectors(data: object, alpha: float = 0.1) -> float:
        import numpy as np

        from cargobike import trial

        rows = data.to_pandas()  # type: ignore[attr-defined]
        x, y = np.stack(rows["features"].to_list()), rows["y"].to_numpy()
        x = np.hstack([x, np.ones((len(x), 1))])
        trial.checkpoint.save(np.linalg.solve(x.T @ x + alpha * np.eye(x.shape[1]), x.T @ y))
        return 0.0

    def answer(model: object, batch: object) -> object:
        import numpy as np

        x = np.stack(batch["features"].to_list())  # type: ignore[index]
        return np.hstack([x, np.ones((len(x), 1))]) @ model

    estimator = Estimator(fit_vectors, answer, columns=["features", "y"], output="double", workers=0, engine="local")
    search = CrossValidator(
        estimator=estimator,
        estimatorParamMaps=ParamGridBuilder().addGrid(estimator.alpha, [1e6, 0.0001]).build(),
        evaluator=RegressionEvaluator(labelCol="y"),
        numFolds=2,
        seed=1,
    )
    assembled = VectorAssembler(inputCols=["a", "b"], outputCol="features").transform(frame)
    found = search.fit(assembled)
    assert found.avgMetrics[0] > 0.5 > found.avgMetrics[1]
    assert worst(found.transform(assembled)) < 0.1
