"""Data, features, a search, a model and its deployment; and a second DAG that rolls whenever a model was registered."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG

from cargobike_provider.assets.cargobike import create_asset
from cargobike_provider.operators import (
    CargobikeDeployOperator,
    CargobikeExperimentOperator,
    CargobikeFunctionOperator,
    CargobikeRegisterModelOperator,
    CargobikeRollOperator,
)
from cargobike_provider.sensors.cargobike import CargobikeFeatureGroupSensor

STEPS = str(Path(__file__).with_name("house_prices.py"))

with DAG(
    "example_cargobike",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["example"],
    render_template_as_native_obj=True,
) as dag:
    make_data = CargobikeFunctionOperator(
        task_id="make_data",
        function=f"{STEPS}:make_data",
        op_kwargs={"houses": 200},
        create_project=True,
        outlets=[create_asset(kind="table", name="houses")],
    )
    make_features = CargobikeFunctionOperator(
        task_id="make_features",
        function=f"{STEPS}:make_features",
        op_kwargs={"table": make_data.output, "at": "2026-01-01T00:00:00Z"},
        outlets=[create_asset(kind="group", name="houses"), create_asset(kind="dataset", name="house_prices")],
    )
    fresh = CargobikeFeatureGroupSensor(
        task_id="fresh", group="houses", max_age=timedelta(hours=1), deferrable=True, timeout=600, poke_interval=5
    )
    search = CargobikeExperimentOperator(
        task_id="search",
        train=f"{STEPS}:train",
        space={"ridge": [0.0, 1.0, 10.0]},
        experiment_name="house_prices",
        metric="error",
        direction="min",
        options={"workers": 2, "data": "{{ ti.xcom_pull(task_ids='make_features')['dataset'] }}"},
    )
    register = CargobikeRegisterModelOperator(
        task_id="register", model_name="house_prices", trial=search.output, promote_to="champion", when="error < 1000"
    )
    deploy = CargobikeDeployOperator(task_id="deploy", deployment="houses", model="house_prices@champion")
    make_features >> fresh >> search >> register >> deploy

with DAG(
    "example_cargobike_roll",
    schedule=[create_asset(kind="model", name="house_prices")],
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["example"],
) as roll_dag:
    CargobikeRollOperator(task_id="roll", deployment="houses", model="house_prices@champion")
