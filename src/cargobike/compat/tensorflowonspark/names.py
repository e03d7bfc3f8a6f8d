"""What the calls of TensorFlowOnSpark are called here."""

from __future__ import annotations

from typing import Final

from cargobike.compat.translations import Translation

_TF1: Final = "Of TensorFlow 1: raises an error that shows the line of TensorFlow 2."
_DATA: Final = "Give the rows as data=…: each rank gets its share as `data`, which it reads itself."
_CONTEXT: Final = "`from cargobike import trial`"
_PARAMS: Final = "Arguments of the Estimator, or parameters of the train function, which are Params as well."


def _setters(owner: str, names: str) -> tuple[Translation, ...]:
    return tuple(
        Translation(f"tensorflowonspark.pipeline.{owner}.set{name}", "", ("value",), remark=_PARAMS)
        for name in names.split()
    )


TRANSLATIONS: Final[tuple[Translation, ...]] = (
    Translation(
        "tensorflowonspark.TFCluster.run",
        "cargobike.experiment.allreduce",
        (
            *("sc", "map_fun", "tf_args", "num_executors", "num_ps", "tensorboard", "input_mode", "log_dir"),
            *("driver_ps_nodes", "master_node", "reservation_timeout", "queues", "eval_node", "release_port"),
        ),
        {"sc": "engine", "map_fun": "train", "tf_args": "params", "num_executors": "workers"},
        frozenset({"driver_ps_nodes", "queues", "release_port", "reservation_timeout", "log_dir", "input_mode"}),
        remark="The function takes its parameters by name instead of (args, ctx), the call waits for its end, and "
        'roles={"chief": 1, "worker": 2, "ps": 1} stands for num_ps, master_node and eval_node.',
    ),
    Translation(
        "tensorflowonspark.TFCluster.InputMode", "", remark="data=… feeds a function; without it, it reads for itself."
    ),
    Translation("tensorflowonspark.TFCluster.InputMode.TENSORFLOW", "", remark="Call without data=…"),
    Translation("tensorflowonspark.TFCluster.InputMode.SPARK", "", remark=_DATA),
    Translation(
        "tensorflowonspark.TFCluster.TFCluster.train",
        "cargobike.experiment.allreduce",
        ("dataRDD", "num_epochs", "feed_timeout", "qname"),
        {"dataRDD": "data"},
        frozenset({"feed_timeout", "qname", "num_epochs"}),
        remark=_DATA + " Epochs are a loop of the function. Here num_epochs=0 lasts until functions stop.",
    ),
    Translation(
        "tensorflowonspark.TFCluster.TFCluster.inference",
        "cargobike.experiment.inference",
        ("dataRDD", "feed_timeout", "qname"),
        {"dataRDD": "data"},
        frozenset({"feed_timeout", "qname"}),
        remark="Takes a function from batches to predictions first: inference(predict, data).",
    ),
    Translation(
        "tensorflowonspark.TFCluster.TFCluster.shutdown",
        "",
        ("ssc", "grace_secs", "timeout"),
        remark="Not needed: allreduce returns when all ranks have. Raises the error of a node instead of SystemExit.",
    ),
    Translation(
        "tensorflowonspark.TFCluster.TFCluster.tensorboard_url",
        "",
        remark="`cargobike tensorboard`, or experiment.launch(…, tensorboard=True).",
    ),
    Translation("tensorflowonspark.TFSparkNode.TFNodeContext.job_name", "cargobike.trial.role", remark=_CONTEXT),
    Translation("tensorflowonspark.TFSparkNode.TFNodeContext.task_index", "cargobike.trial.rank", remark=_CONTEXT),
    Translation("tensorflowonspark.TFSparkNode.TFNodeContext.worker_num", "cargobike.trial.rank", remark=_CONTEXT),
    Translation("tensorflowonspark.TFSparkNode.TFNodeContext.executor_id", "cargobike.trial.rank", remark=_CONTEXT),
    Translation(
        "tensorflowonspark.TFSparkNode.TFNodeContext.num_workers", "cargobike.trial.world_size", remark=_CONTEXT
    ),
    Translation(
        "tensorflowonspark.TFSparkNode.TFNodeContext.cluster_spec",
        "",
        remark="TF_CONFIG holds it; ranks of torch meet by MASTER_ADDR and MASTER_PORT, which are set as well.",
    ),
    Translation("tensorflowonspark.TFSparkNode.TFNodeContext.defaultFS", "", remark="Give addresses with a scheme."),
    Translation(
        "tensorflowonspark.TFSparkNode.TFNodeContext.working_dir",
        "",
        remark='Functions run in the folder of their trial; working_directory="launch" leaves them in the caller\'s.',
    ),
    Translation("tensorflowonspark.TFSparkNode.TFNodeContext.mgr", "", remark=_DATA),
    Translation(
        "tensorflowonspark.TFSparkNode.TFNodeContext.tmp_socket", "", remark="Ports are held and freed by the gang."
    ),
    Translation(
        "tensorflowonspark.TFSparkNode.TFNodeContext.absolute_path",
        "",
        ("path",),
        remark="Give addresses with a scheme.",
    ),
    Translation("tensorflowonspark.TFNode.hdfs_path", "", ("ctx", "path"), remark="Give addresses with a scheme."),
    Translation(
        "tensorflowonspark.TFSparkNode.TFNodeContext.get_data_feed",
        "",
        ("train_mode", "qname_in", "qname_out", "input_mapping"),
        remark=_DATA,
    ),
    Translation(
        "tensorflowonspark.TFNode.DataFeed",
        "",
        ("mgr", "train_mode", "qname_in", "qname_out", "input_mapping"),
        remark=_DATA,
    ),
    Translation(
        "tensorflowonspark.TFNode.DataFeed.next_batch",
        "data.batches",
        ("batch_size",),
        remark="`for batch in data.batches(100)`: columns by name, as arrays.",
    ),
    Translation("tensorflowonspark.TFNode.DataFeed.should_stop", "", remark="The loop over batches ends by itself."),
    Translation(
        "tensorflowonspark.TFNode.DataFeed.batch_results",
        "cargobike.experiment.inference",
        ("results",),
        remark="Return the predictions from the function that inference calls.",
    ),
    Translation("tensorflowonspark.TFNode.DataFeed.terminate", "", remark="Leave the loop over batches."),
    Translation("tensorflowonspark.TFNode.DataFeed.done_feeding", "", remark="The loop over batches ends by itself."),
    Translation(
        "tensorflowonspark.TFSparkNode.TFNodeContext.start_cluster_server", "", ("num_gpus", "rdma"), remark=_TF1
    ),
    Translation("tensorflowonspark.TFNode.start_cluster_server", "", ("ctx", "num_gpus", "rdma"), remark=_TF1),
    Translation(
        "tensorflowonspark.TFSparkNode.TFNodeContext.export_saved_model",
        "",
        ("sess", "export_dir", "tag_set", "signatures"),
        remark=_TF1,
    ),
    Translation(
        "tensorflowonspark.TFNode.export_saved_model", "", ("sess", "export_dir", "tag_set", "signatures"), remark=_TF1
    ),
    Translation(
        "tensorflowonspark.TFSparkNode.TFNodeContext.release_port", "", remark="Ports are held and freed by the gang."
    ),
    Translation("tensorflowonspark.TFNode.release_port", "", ("ctx",), remark="Ports are held and freed by the gang."),
    Translation(
        "tensorflowonspark.TFParallel.run",
        "cargobike.experiment.allreduce",
        ("sc", "map_fn", "tf_args", "num_executors", "use_barrier"),
        {"sc": "engine", "map_fn": "train", "tf_args": "params", "num_executors": "workers"},
        frozenset({"use_barrier"}),
        remark="The function takes its parameters by name instead of (args, ctx).",
    ),
    Translation(
        "tensorflowonspark.compat.export_saved_model",
        "cargobike.models.register",
        ("model", "export_dir", "is_chief"),
        remark="Or `model.export(export_dir)` of Keras, by rank 0 alone.",
    ),
    Translation(
        "tensorflowonspark.compat.disable_auto_shard",
        "",
        ("options",),
        remark="A function that is fed gets its own share already.",
    ),
    Translation("tensorflowonspark.compat.is_gpu_available", "cargobike.devices.get_num_gpus", remark="> 0"),
    Translation(
        "tensorflowonspark.dfutil.saveAsTFRecords",
        "cargobike.data.write_tfrecord",
        ("df", "output_dir"),
        remark="Writes any rows; on Spark each partition writes a file of its own.",
    ),
    Translation(
        "tensorflowonspark.dfutil.loadTFRecords",
        "cargobike.data.tfrecord",
        ("sc", "input_dir", "binary_features"),
        {"input_dir": "path"},
        remark="Opens records as a source for data=… and Loader.",
    ),
    Translation("tensorflowonspark.dfutil.isLoadedDF", "", ("df",), remark="Sources know where they come from."),
    Translation(
        "tensorflowonspark.pipeline.TFEstimator",
        "cargobike.spark.Estimator",
        ("train_fn", "tf_args", "export_fn"),
        {"train_fn": "train"},
        frozenset({"export_fn"}),
        remark="The train function saves its model as a checkpoint, and `predict` predicts with it: any framework.",
    ),
    Translation(
        "tensorflowonspark.pipeline.TFModel", "cargobike.spark.Model", ("tf_args",), remark="What fit returns."
    ),
    *_setters(
        "TFEstimator",
        "BatchSize ClusterSize Epochs Steps Readers NumPS DriverPSNodes InputMapping InputMode MasterNode Protocol "
        "Tensorboard ModelDir ExportDir TFRecordDir GraceSecs",
    ),
    *_setters("TFModel", "InputMapping OutputMapping BatchSize ModelDir ExportDir SignatureDefKey TagSet"),
    Translation("tensorflowonspark.pipeline.Namespace", "", ("d",), remark="`argparse.Namespace(**d)`."),
    Translation("tensorflowonspark.pipeline.TFParams.merge_args_params", "", remark=_PARAMS),
    Translation(
        "tensorflowonspark.util.single_node_env",
        "",
        ("num_gpus", "worker_index", "nodes"),
        remark="Each worker sees its own GPUs already.",
    ),
    Translation(
        "tensorflowonspark.gpu_info.get_gpus",
        "",
        ("num_gpu", "worker_index", "format"),
        remark="Each worker sees its own GPUs already: ask for them with resources=Resources(gpus=1).",
    ),
    Translation("tensorflowonspark.gpu_info.is_gpu_available", "cargobike.devices.get_num_gpus", remark="> 0"),
    Translation(
        "tensorflowonspark.reservation.Client.request_stop",
        "",
        remark="`cargobike stop EXPERIMENT` ends any experiment.",
    ),
)
