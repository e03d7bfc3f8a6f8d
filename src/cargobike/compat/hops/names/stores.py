"""Names of hops for features, models and serving."""

from __future__ import annotations

from typing import Final

from cargobike.compat.translations import Translation as T

_STORE: Final = "hops.featurestore"
_MODEL: Final = "hops.model"
_SERVING: Final = "hops.serving"
_DATASET: Final = "ours are made by views: `view.create_training_dataset(name, labels, format='tfrecord')`"
_FRAME: Final = "returns a query: `.to_pandas()`, `.to_spark()`; versions are written `teams:1.budget`"
_STATUS: Final = "`deployment.status()` has it"
_ADDRESS: Final = "refused: addresses are given where data is read"

TRANSLATIONS: Final[tuple[T, ...]] = (
    T(f"{_STORE}.create_featuregroup", "cargobike.features.create_group", remark="then `group.insert(df)`"),
    T(
        f"{_STORE}.insert_into_featuregroup",
        "cargobike.features.Group.insert",
        remark="`features.group(name).insert(df)`",
    ),
    T(f"{_STORE}.get_features", "cargobike.features.get_features", remark=_FRAME),
    T(f"{_STORE}.get_feature", "cargobike.features.get_features", remark=_FRAME),
    T(f"{_STORE}.get_featuregroup", "cargobike.features.Group.read", remark="`features.group(name).read()`: Arrow"),
    T(f"{_STORE}.sql", "", remark="`group.insert(sql)` answers SQL over groups; DuckDB and Spark read `group.url`"),
    T(f"{_STORE}.create_training_dataset", "cargobike.features.View.create_training_dataset", remark=_DATASET),
    T(
        f"{_STORE}.insert_into_training_dataset",
        "",
        remark="training datasets of ours never change: make a new version",
    ),
    T(f"{_STORE}.get_training_dataset", "cargobike.features.training_dataset", remark="`dataset['train'].to_pandas()`"),
    T(f"{_STORE}.get_training_dataset_path", "cargobike.features.training_dataset", remark="`dataset['train'].url`"),
    T(f"{_STORE}.get_training_dataset_tf_record_schema", "cargobike.data.Loader", remark="reads without a schema"),
    T(f"{_STORE}.get_dataframe_tf_record_schema", "cargobike.data.Loader", remark="reads without a schema"),
    T(f"{_STORE}.project_featurestore", "cargobike.project.current", remark="a project has one feature store"),
    T(f"{_STORE}.get_project_featurestores", "cargobike.project.current", remark="a project has one feature store"),
    T(f"{_STORE}.get_featuregroups", "cargobike.features.list_groups", remark="groups, not names"),
    T(f"{_STORE}.get_features_list", "cargobike.features.list_groups", remark="`group.schema.names` of each"),
    T(f"{_STORE}.get_featuregroup_features_list", "cargobike.features.group", remark="`group.schema.names`"),
    T(f"{_STORE}.get_training_datasets", "cargobike.features.list_training_datasets", remark="those of views"),
    T(f"{_STORE}.get_featurestore_metadata", "cargobike.features.list_groups", remark="`group.definition` of each"),
    T(f"{_STORE}.get_latest_featuregroup_version", "cargobike.features.group", remark="`group.version`"),
    T(f"{_STORE}.get_latest_training_dataset_version", "cargobike.features.training_dataset", remark="`.version`"),
    T(f"{_STORE}.get_featuregroup_statistics", "cargobike.features.Group.statistics"),
    T(f"{_STORE}.get_training_dataset_statistics", "", remark="`cargobike.monitoring` compares tables; else pandas"),
    T(f"{_STORE}.update_featuregroup_stats", "", remark="not needed: statistics are kept with each insert"),
    T(f"{_STORE}.update_training_dataset_stats", "", remark="not needed: they are computed when asked for"),
    T(f"{_STORE}.visualize_featuregroup_distributions", "cargobike.features.Group.statistics", remark="shows itself"),
    T(f"{_STORE}.visualize_featuregroup_correlations", "cargobike.features.Group.statistics", remark="`.correlations`"),
    T(f"{_STORE}.visualize_featuregroup_descriptive_stats", "cargobike.features.Group.statistics"),
    T(f"{_STORE}.visualize_featuregroup_clusters", "", remark="refused: clusters are not computed"),
    T(f"{_STORE}.visualize_training_dataset_distributions", "", remark="statistics of its rows, which show themselves"),
    T(f"{_STORE}.visualize_training_dataset_correlations", "", remark="by both names"),
    T(f"{_STORE}.visualize_training_dataset_descriptive_stats", "", remark="statistics of its rows"),
    T(f"{_STORE}.visualize_training_dataset_clusters", "", remark="refused: clusters are not computed"),
    T(f"{_STORE}.connect", "cargobike.project.use", remark="there is no server; a project is a folder or an address"),
    T(f"{_STORE}.disconnect", "", remark="not needed: there is no server"),
    T(f"{_STORE}.enable_featuregroup_online", "cargobike.features.Group.update", remark="`update(online=True)`"),
    T(f"{_STORE}.disable_featuregroup_online", "cargobike.features.Group.update", remark="`update(online=False)`"),
    T(f"{_STORE}.add_tag", "cargobike.features.Group.update", remark="`update(tags=[…])`"),
    T(f"{_STORE}.get_tags", "cargobike.features.group", remark="`group.definition.tags`"),
    T(f"{_STORE}.get_storage_connectors", "", remark=_ADDRESS),
    T(f"{_STORE}.get_storage_connector", "", remark=_ADDRESS),
    T(f"{_STORE}.get_online_featurestore_connector", "", remark=_ADDRESS),
    T(f"{_STORE}.create_on_demand_featuregroup", "", remark="refused: `group.insert(sql)` takes rows from elsewhere"),
    T(f"{_STORE}.import_featuregroup_s3", "", remark="refused: `group.insert('s3://…')`"),
    T(f"{_STORE}.import_featuregroup_redshift", "", remark="refused: insert a frame or files"),
    T(f"{_MODEL}.export", "cargobike.models.register", remark="`register(name, files=path)`, or the model itself"),
    T(
        f"{_MODEL}.get_best_model",
        "cargobike.models.best",
        ("name", "metric", "direction", "project"),
        dropped=frozenset({"project"}),
        remark="`'max'` or `'min'`; returns a version, not a dict",
    ),
    T(f"{_MODEL}.get_model", "cargobike.models.get", remark="`get('digits:3')`"),
    T(f"{_MODEL}.download_model", "cargobike.models.ModelVersion.folder", remark="its files, where they lie"),
    T(f"{_MODEL}.Metric", "", remark="`direction='max'` or `'min'`"),
    T(f"{_MODEL}.ModelNotFound", "cargobike.errors.NotFoundError"),
    T(f"{_SERVING}.create_or_update", "cargobike.serving.deploy", remark="defines and starts at once"),
    T(
        f"{_SERVING}.start",
        "cargobike.serving.start",
        ("serving_name",),
        {"serving_name": "name"},
        remark="`detach=True`",
    ),
    T(f"{_SERVING}.stop", "cargobike.serving.Deployment.stop", remark="`serving.deployment(name).stop()`"),
    T(f"{_SERVING}.delete", "cargobike.serving.Deployment.remove", remark="`serving.deployment(name).remove()`"),
    T(f"{_SERVING}.exists", "cargobike.serving.list_deployments"),
    T(f"{_SERVING}.get_status", "cargobike.serving.Deployment.status", remark="`.state` is `serving`, `stopped` …"),
    T(f"{_SERVING}.get_all", "cargobike.serving.list_deployments"),
    T(f"{_SERVING}.get_id", "", remark="deployments have names"),
    T(f"{_SERVING}.get_kafka_topic", "cargobike.serving.read_log", remark="requests are logged to files"),
    T(f"{_SERVING}.make_inference_request", "cargobike.serving.Deployment.predict", remark="rows in, answers out"),
    T(f"{_SERVING}.get_version", "cargobike.serving.Deployment.status", remark=_STATUS),
    T(f"{_SERVING}.get_type", "", remark="models say how they are kept: `version.flavour`"),
    T(f"{_SERVING}.get_artifact_path", "", remark=_STATUS),
    T(f"{_SERVING}.get_model_path", "", remark=_STATUS),
    T(f"{_SERVING}.get_model_name", "cargobike.serving.Deployment.status", remark=_STATUS),
    T(f"{_SERVING}.get_model_version", "cargobike.serving.Deployment.status", remark=_STATUS),
    T(f"{_SERVING}.get_model_server", "", remark="models say how they are kept: `version.flavour`"),
    T(f"{_SERVING}.get_predictor", "", remark="a script is part of the model that is registered"),
    T(f"{_SERVING}.describe", "cargobike.serving.Deployment.status", remark="`print(deployment.status())`"),
    T(f"{_SERVING}.export", "cargobike.models.register", remark="`register(name, files=path)`"),
)
