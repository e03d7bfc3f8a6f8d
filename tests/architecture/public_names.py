"""The public surface as data: every public module, and the names in it.

A name that is added here is a promise to users; one that is taken away breaks their programs. What a document teaches
comes from here.
"""

from __future__ import annotations

PUBLIC: dict[str, str] = {
    "cargobike": (
        "IDLE AbstractOptimizer Resources Search Searchspace Suggestion Trial __version__ devices experiment project "
        "tensorboard trial"
    ),
    "cargobike.callbacks": (
        "FoldsReport KerasReport LightGBMReport LightningReport SklearnReport TransformersReport XGBoostReport"
    ),
    "cargobike.client": "RemoteProject connect",
    "cargobike.compat": "",
    "cargobike.dashboard": "ServerState create_app",
    "cargobike.data": (
        "Loader Progress Table arrived csv delta json_lines list open pack tfrecord webdataset write write_tfrecord"
    ),
    "cargobike.devices": "accelerator get_gpus get_num_cpus get_num_gpus",
    "cargobike.engines": (
        "AvoidsBadMachines ChecksWorkers Elsewhere EndKind Ending Engine Listening LocalEngine SimulatedEngine "
        "SparkEngine TellsWaiting WarmsUp WorkerHandle WorkerSpec"
    ),
    "cargobike.errors": (
        "AuthenticationError CargobikeError ConnectionLostError DeploymentError EngineError "
        "ExperimentFailedError ForbiddenError FrameError FunctionError GateError InvalidInputError "
        "MissingLibraryError NotFoundError "
        "OptimizerError PredictionError ProgramError RecordError RunCancelledError "
        "ServerRefusedError SignatureError SpaceError StepFailedError StillReadingError StoreError "
        "SupersededError TrialFailedError TrialPaused TrialStopped UntrustedError WaitError"
    ),
    "cargobike.experiment": (
        "allreduce collective_all_reduce command inference launch list load parameter_server reproduce resume"
    ),
    "cargobike.features": (
        "Commit Definition Expectation Group Query Statistics TrainingDataset Vector Vectors View between changed "
        "create_group create_view fresh get_features group lineage list_groups list_training_datasets list_views "
        "not_null one_of remove_group search training_dataset unique view"
    ),
    "cargobike.journals": (
        "EXPERIMENT_FACTS Attempt AttemptLost AttemptStarted CheckpointSaved ExperimentEnded ExperimentRecord "
        "ExperimentResumed "
        "ExperimentStarted Fact JournalReader JournalWriter Judged "
        "ModelKept OptimizerIdled Reported TrialEnded TrialPaused "
        "TrialResumed TrialSuggested WorkerJoined WorkerLost WorkerSeen fold metrics_of read_header read_journal "
        "read_record seal"
    ),
    "cargobike.keras": "prepare shard",
    "cargobike.models": (
        "Field Flavour Given ModelVersion Promotion Saved Signature best export_mlflow export_to get history "
        "import_from import_mlflow list register remove remove_alias retain"
    ),
    "cargobike.monitoring": (
        "Acknowledged Alarm AlarmRaised ChangePoint ChangePoints Compared Comparison ErrorMeasured Figure Hooks "
        "Judgement Labelled Monitor MonitorRecord MonitorStatus Moved Policy Reference Shift Side State Watched "
        "WindowJudged compare drifted join_labels labels list_monitors merge_states monitor watch window_rows"
    ),
    "cargobike.optimizers": (
        "ASHA BOHB CMAES DEHB IDLE NSGA2 TPE Ablation AbstractOptimizer Auto Decision DifferentialEvolution "
        "EvolutionSampler GaussianProcess GridSearch Hyperband Listed ModelSampler OptunaOptimizer "
        "PopulationBasedTraining RandomSampler RandomSearch Sampler Sobol Suggestion optimizer_names"
    ),
    "cargobike.pipelines": (
        "Run RunState Schedule Step StepResult StepState cancel cause find_schedule get list resume run schedule "
        "schedules step"
    ),
    "cargobike.project": (
        "ExperimentFolder ExperimentRow Index ProjectFolder TrialRow Where current experiment_ids find_experiment "
        "open_index path prepare use"
    ),
    "cargobike.results": (
        "Asked Comparison Curve Decision Environment ExperimentState ExperimentSummary FileDifference MetricComparison "
        "Note RecordedTrial Reform Reproduction Result Sample Snapshot Trial TrialCheckpoint TrialState Usage compare"
    ),
    "cargobike.sklearn": "Estimator",
    "cargobike.spark": "Estimator Model trusting",
    "cargobike.serving": (
        "Deployment Limits Logging Plan ReplicaStatus Scaling Specification Status Traffic VersionFigures deploy "
        "deployment list_deployments read_log start"
    ),
    "cargobike.sharing": (
        "Arrival Entry Holder Opinion block get holders mute opinions publish rate search trust withdraw"
    ),
    "cargobike.simulation": "Cluster SimulatedRun SimulationResult simulate",
    "cargobike.products": "Command Product",
    "cargobike.spaces": "Parameter Searchspace SpaceFile read_space",
    "cargobike.storage": "Entry Storage open_storage",
    "cargobike.stop_rules": "Decision EndRule MedianRule PatienceRule PercentileRule StopRule TargetReached",
    "cargobike.tensorboard": "logdir",
    "cargobike.testing": "engines flavours journals optimizers storages stores triggers",
    "cargobike.testing.engines": "Desk EngineContract ProcessEngineContract",
    "cargobike.testing.flavours": "FlavourCase FlavourContract",
    "cargobike.testing.journals": "canonical",
    "cargobike.testing.optimizers": "Drive Fate OptimizerContract drive",
    "cargobike.testing.storages": "StorageContract",
    "cargobike.testing.stores": "IndexContract JournalBuilder assert_rows_equal_record",
    "cargobike.testing.triggers": "TriggerContract",
    "cargobike.torch": (
        "DDP FSDP DiLoCo LocalSGD ParameterClient ParameterServer PowerSGD Prepared TopK Traffic Zero1 all_reduce "
        "barrier is_main main_first parameter_client prepare rank world_size"
    ),
    "cargobike.trial": "TrialPaused TrialStopped all_reduce artifact barrier current report",
}

PROPERTIES: dict[str, str] = {
    "cargobike.trial": (
        "id number attempt params seed rank local_rank world_size is_distributed role logdir checkpoint should_stop"
    ),
}
"""What a public module answers besides its `__all__`: values that differ from trial to trial."""

FORMER: dict[str, str] = {
    "cargobike.core.errors": "SpaceError StoreError",
    "cargobike.core.facts": "Reported",
    "cargobike.core.records": "Decision",
    "cargobike.driver.simulation": "Cluster SimulatedRun simulate",
    "cargobike.engines.spark": "SparkEngine",
    "cargobike.search.ablation": "Ablation",
    "cargobike.search.asha": "ASHA",
    "cargobike.search.bohb": "BOHB ModelSampler",
    "cargobike.search.dehb": "DEHB",
    "cargobike.search.differential_evolution": "DifferentialEvolution",
    "cargobike.search.hyperband": "Hyperband",
    "cargobike.search.optuna_bridge": "OptunaOptimizer",
    "cargobike.search.pbt": "PopulationBasedTraining",
    "cargobike.search.space_formats": "read_space",
    "cargobike.search.stop_rules": "MedianRule TargetReached",
    "cargobike.search.tpe": "TPE",
    "cargobike.store.comparison": "compare",
    "cargobike.store.fold": "metrics_of read_record",
    "cargobike.store.journal": "JournalWriter read_journal seal",
    "cargobike.store.opening": "open_index",
    "cargobike.training.parameter_server": "serve",
    "cargobike.ui.web.app": "create_app",
    "cargobike.ui.web.state": "ServerState",
    "cargobike.worker.context": "current",
}
"""What documents taught before there were public modules; programs that were written after them still run."""
