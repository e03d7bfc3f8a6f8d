"""What the calls of Maggy are called here."""

from __future__ import annotations

from typing import Final

from cargobike.compat.translations import Translation

_LAUNCH: Final = "cargobike.experiment.launch"
_ALLREDUCE: Final = "cargobike.experiment.allreduce"
_MEANINGLESS: Final = frozenset({"hb_interval"})
_CONFIG: Final = "Its arguments are arguments of `experiment.launch`."

_SPACE: Final = "Made in the same way, and `lagom` takes it; `names` and others are no calls there."

_EXPERIMENTS: Final = (
    Translation(
        "maggy.experiment.launch",
        _LAUNCH,
        positional=(
            "map_fun",
            "searchspace",
            "optimizer",
            "direction",
            "num_trials",
            "name",
            "hb_interval",
            "es_policy",
            "es_interval",
            "es_min",
        ),
        renamed={"map_fun": "train", "searchspace": "space", "es_policy": "early_stop"},
        dropped=_MEANINGLESS,
        remark="Returns a `Result`: `result.best.params` for `max_hp`. `es_interval` and `es_min` belong to a rule: "
        "`early_stop=MedianRule(min_trials=10, interval=5)`.",
    ),
    Translation(
        "maggy.experiment.lagom",
        _LAUNCH,
        positional=("train_fn", "config"),
        renamed={"train_fn": "train", "map_fun": "train", "searchspace": "space", "optimization_key": "metric"},
        dropped=_MEANINGLESS,
        remark="What stood in the configuration becomes arguments; returns a `Result`: `result.best.params` for "
        "`best_config`, `result.best.value` for `best_val`.",
    ),
)

_CONFIGS: Final = (
    Translation("maggy.experiment_config.OptimizationConfig", _LAUNCH, remark=_CONFIG),
    Translation("maggy.config.HyperparameterOptConfig", _LAUNCH, remark=_CONFIG),
    Translation(
        "maggy.config.AblationConfig",
        "cargobike.optimizers.Ablation",
        remark="An ablation is an optimizer: `experiment.launch(train, optimizer=Ablation(…))`.",
    ),
    Translation(
        "maggy.experiment_config.AblationConfig",
        "cargobike.optimizers.Ablation",
        remark="An ablation is an optimizer: `experiment.launch(train, optimizer=Ablation(…))`.",
    ),
    Translation(
        "maggy.config.TorchDistributedConfig",
        _ALLREDUCE,
        remark="`cargobike.torch.prepare(model, optimizer, loader)` inside the function; `zero_lvl=3` is "
        '`strategy="fsdp"`. There is no `backend="deepspeed"`.',
    ),
    Translation(
        "maggy.experiment_config.TorchDistributedConfig",
        _ALLREDUCE,
        remark="As `maggy.config.TorchDistributedConfig`.",
    ),
    Translation(
        "maggy.config.TfDistributedConfig",
        _ALLREDUCE,
        remark="`cargobike.keras.prepare(model)` inside the function, `cargobike.keras.shard(x, y)` for its share.",
    ),
    Translation(
        "maggy.experiment_config.TfDistributedConfig", _ALLREDUCE, remark="As `maggy.config.TfDistributedConfig`."
    ),
    Translation(
        "maggy.config.BaseConfig", _LAUNCH, remark="A single run: `experiment.launch(train, params={…}, name=…)`."
    ),
    Translation(
        "maggy.config.LagomConfig", "", remark="Only the base of the configurations, which are arguments here."
    ),
    Translation(
        "maggy.experiment_config.LagomConfig",
        "",
        remark="Only the base of the configurations, which are arguments here.",
    ),
)

_SPACES: Final = (
    Translation("maggy.Searchspace", "cargobike.Searchspace", remark=_SPACE),
    Translation("maggy.searchspace.Searchspace", "cargobike.Searchspace", remark=_SPACE),
    Translation(
        "maggy.Searchspace.add", "cargobike.Searchspace.add", positional=("name", "value"), renamed={"value": "spec"}
    ),
    Translation("maggy.Searchspace.to_dict", "cargobike.Searchspace.describe", remark="A list with a dict for each."),
    Translation("maggy.Searchspace.names", "cargobike.Searchspace.names", remark="A tuple, not a call."),
    Translation("maggy.Searchspace.get", "cargobike.Searchspace.parameters", remark="`space.parameters[name].values`."),
    Translation(
        "maggy.Searchspace.get_random_parameter_values",
        "cargobike.Searchspace.get_random_parameter_values",
        positional=("num",),
    ),
    Translation("maggy.Searchspace.items", "cargobike.Searchspace.parameters", remark="A dict of parameters by name."),
    Translation("maggy.Searchspace.keys", "cargobike.Searchspace.names", remark="A tuple, not a call."),
    Translation("maggy.Searchspace.values", "cargobike.Searchspace.parameters", remark="A dict of parameters by name."),
    Translation("maggy.Searchspace.json", "cargobike.Searchspace.describe", remark="Data that JSON can hold."),
    Translation(
        "maggy.Searchspace.transform", "cargobike.Searchspace.to_unit", remark="Takes a dict; choices are shares, too."
    ),
    Translation("maggy.Searchspace.inverse_transform", "cargobike.Searchspace.from_unit", remark="Returns a dict."),
    Translation(
        "maggy.Trial", "cargobike.Trial", remark="`trial.number` and `trial.id` count trials; there is no hash."
    ),
    Translation(
        "maggy.trial.Trial", "cargobike.Trial", remark="`trial.value` for `final_metric`, `trial.state` for `status`."
    ),
)

_OPTIMIZERS: Final = (
    Translation("maggy.optimizer.RandomSearch", "cargobike.optimizers.RandomSearch", remark="Searches any space."),
    Translation("maggy.randomsearch.RandomSearch", "cargobike.optimizers.RandomSearch", remark="Searches any space."),
    Translation("maggy.optimizer.GridSearch", "cargobike.optimizers.GridSearch", remark="Leave `num_trials` out."),
    Translation(
        "maggy.optimizer.Asha",
        "cargobike.optimizers.ASHA",
        positional=("reduction_factor", "resource_min", "resource_max"),
        remark="Looks at what a function reports and pauses it, instead of starting again with a larger `budget`.",
    ),
    Translation("maggy.optimizer.SingleRun", _LAUNCH, remark="`experiment.launch(train, params={}, repeats=3)`."),
    Translation("maggy.optimizer.bayes.TPE", "cargobike.optimizers.TPE", renamed={"n_samples": "candidates"}),
    Translation("maggy.optimizer.TPE", "cargobike.optimizers.TPE", renamed={"n_samples": "candidates"}),
    Translation("maggy.optimizer.bayes.GP", "cargobike.optimizers.GaussianProcess", remark="Through Optuna."),
    Translation("maggy.optimizer.GP", "cargobike.optimizers.GaussianProcess", remark="Through Optuna."),
    Translation(
        "maggy.optimizer.AbstractOptimizer",
        "cargobike.AbstractOptimizer",
        remark="The same methods; `self.space` for `self.searchspace`, `self.trials` for `self.trial_store`; return a "
        "dict of parameters.",
    ),
    Translation(
        "maggy.optimizer.AbstractOptimizer.create_trial",
        "cargobike.Suggestion",
        remark="Or return a dict of parameters from `get_suggestion`.",
    ),
    Translation(
        "maggy.pruner.Hyperband",
        "cargobike.optimizers.Hyperband",
        renamed={"min_budget": "resource_min", "max_budget": "resource_max", "eta": "reduction_factor"},
        dropped=frozenset({"n_iterations"}),
        remark="An optimizer of its own; with TPE it is `BOHB`.",
    ),
    Translation(
        "maggy.pruner.Hyperband.pruning_routine",
        "",
        remark="A pruner works with RandomSearch and TPE; an optimizer of your own gives budgets itself.",
    ),
)

_TRAINING: Final = (
    Translation(
        "maggy.core.reporter.Reporter.broadcast",
        "cargobike.trial.report",
        positional=("metric", "step"),
        remark="With names: `trial.report(loss=loss, step=epoch)`, for `reporter.broadcast(loss, epoch)`.",
    ),
    Translation("maggy.core.reporter.Reporter.log", "", remark="Print: what a trial prints is kept with it."),
    Translation("maggy.core.reporter.Reporter.get_trial_id", "cargobike.trial.id", remark="Not a call."),
    Translation(
        "maggy.callbacks.KerasBatchEnd",
        "cargobike.callbacks.KerasReport",
        remark='Reports at the end of each epoch, without a reporter: `KerasReport("loss")`.',
    ),
    Translation(
        "maggy.callbacks.KerasEpochEnd",
        "cargobike.callbacks.KerasReport",
        positional=("reporter", "metric"),
        renamed={"metric": "metrics"},
        dropped=frozenset({"reporter"}),
        remark='Without a reporter: `KerasReport("val_loss")`.',
    ),
    Translation("maggy.tensorboard.logdir", "cargobike.tensorboard.logdir", same=True),
    Translation(
        "maggy.earlystop.AbstractEarlyStop",
        "cargobike.stop_rules.StopRule",
        remark="An object with `judge(trial, step, trials, direction)`.",
    ),
    Translation(
        "maggy.earlystop.MedianStoppingRule",
        "cargobike.stop_rules.MedianRule",
        remark="Compares best values with best values, running trials included.",
    ),
    Translation("maggy.earlystop.NoStoppingRule", "", remark="Leave `early_stop` out."),
    Translation("maggy.core.exceptions.EarlyStopException", "cargobike.trial.TrialStopped"),
    Translation(
        "maggy.core.patching.MaggyPetastormDataLoader",
        "cargobike.data.Loader",
        positional=("dataset", "batch_size", "transform_spec"),
        renamed={"dataset": "source", "transform_spec": "transform"},
        remark='Give `to="torch"` for tensors.',
    ),
    Translation(
        "maggy.core.patching.MaggyDataLoader",
        "cargobike.torch.prepare",
        remark="`prepare(loader=DataLoader(…)).loader`; torch's own class is never replaced.",
    ),
)

_ABLATION: Final = (
    Translation(
        "maggy.ablation.AblationStudy",
        "cargobike.optimizers.Ablation",
        remark="`Ablation(baseline, without, repeats=3)`: a part is a parameter that switches it off.",
    ),
    Translation(
        "maggy.ablation.AblationStudy.features.include", "cargobike.optimizers.Ablation", remark="Part of `without`."
    ),
    Translation(
        "maggy.ablation.AblationStudy.features.exclude", "cargobike.optimizers.Ablation", remark="Part of `without`."
    ),
    Translation(
        "maggy.ablation.AblationStudy.features.list_all", "cargobike.optimizers.Ablation", remark="Part of `without`."
    ),
    Translation(
        "maggy.ablation.AblationStudy.model.layers.include",
        "cargobike.optimizers.Ablation",
        remark="Part of `without`.",
    ),
    Translation(
        "maggy.ablation.AblationStudy.model.layers.exclude",
        "cargobike.optimizers.Ablation",
        remark="Part of `without`.",
    ),
    Translation(
        "maggy.ablation.AblationStudy.model.layers.include_groups",
        "cargobike.optimizers.Ablation",
        remark="`groups=[…]`.",
    ),
    Translation(
        "maggy.ablation.AblationStudy.model.layers.print_all",
        "cargobike.optimizers.Ablation",
        remark="Part of `without`.",
    ),
    Translation(
        "maggy.ablation.AblationStudy.model.set_base_model_generator",
        "cargobike.optimizers.Ablation",
        remark="Make the model in the train function.",
    ),
    Translation(
        "maggy.ablation.AblationStudy.model.add_custom_model_generator",
        "cargobike.optimizers.Ablation",
        remark="A parameter that chooses the model.",
    ),
    Translation(
        "maggy.ablation.AblationStudy.set_dataset_generator",
        "cargobike.optimizers.Ablation",
        remark="Make the data in the train function, or give `experiment.launch(…, data=…)`.",
    ),
    Translation(
        "maggy.ablation.AblationStudy.to_dict", "cargobike.optimizers.Ablation", remark="`result.asked.search`."
    ),
    Translation(
        "maggy.ablation.ablator.AbstractAblator",
        "cargobike.AbstractOptimizer",
        remark="An optimizer that suggests what is left out.",
    ),
    Translation("maggy.ablation.ablator.LOCO", "cargobike.optimizers.Ablation", remark="With rounds, and intervals."),
)

TRANSLATIONS: Final[tuple[Translation, ...]] = (
    *_EXPERIMENTS,
    *_CONFIGS,
    *_SPACES,
    *_OPTIMIZERS,
    *_TRAINING,
    *_ABLATION,
)
