"""Names of hops for running, searching and distributing train functions."""

from __future__ import annotations

from typing import Final

from cargobike.compat.translations import Translation

_LOGDIR: Final = frozenset({"local_logdir"})
_PATH: Final = "`str(result.folder)` is the path, `result.best` the best trial"

TRANSLATIONS: Final[tuple[Translation, ...]] = (
    Translation(
        "hops.experiment.launch",
        "cargobike.experiment.launch",
        ("train", "space", "name", "local_logdir", "description", "metric"),
        {"train_fn": "train", "map_fun": "train", "args_dict": "space", "metric_key": "metric"},
        _LOGDIR,
        remark="a dict of lists is a grid; give a list of dicts for equal lists row by row; `params={}` runs it once. "
        + _PATH,
    ),
    Translation(
        "hops.experiment.grid_search",
        "cargobike.experiment.launch",
        ("train", "space", "direction", "name", "local_logdir", "description", "metric"),
        {
            "train_fn": "train",
            "map_fun": "train",
            "grid_dict": "space",
            "args_dict": "space",
            "optimization_key": "metric",
        },
        _LOGDIR,
        same=True,
        returns=False,
        remark=f"`direction` in lower case; {_PATH}",
    ),
    Translation(
        "hops.experiment.random_search",
        "cargobike.experiment.launch",
        ("train", "space", "direction", "num_trials", "name", "local_logdir", "description", "metric"),
        {
            "train_fn": "train",
            "map_fun": "train",
            "boundary_dict": "space",
            "samples": "num_trials",
            "optimization_key": "metric",
        },
        _LOGDIR,
        remark=f'`optimizer="random"`, and a `Searchspace` in place of the boundaries; {_PATH}',
    ),
    Translation(
        "hops.experiment.differential_evolution",
        "cargobike.experiment.launch",
        ("train", "space", "direction"),
        {
            "train_fn": "train",
            "objective_function": "train",
            "boundary_dict": "space",
            "optimization_key": "metric",
        },
        _LOGDIR | {"mutation", "cleanup_generations"},
        remark="`optimizer=DifferentialEvolution(population, crossover)`, a `Searchspace`, and `num_trials` in place "
        f"of generations; {_PATH}",
    ),
    Translation(
        "hops.experiment.evolutionary_search",
        "cargobike.experiment.launch",
        remark="as `differential_evolution`; the Spark session is given as `engine=SparkEngine(spark)`",
    ),
    Translation(
        "hops.experiment.collective_all_reduce",
        "cargobike.experiment.allreduce",
        ("train", "name", "local_logdir", "description"),
        {"train_fn": "train", "map_fun": "train", "metric_key": "metric"},
        _LOGDIR | {"evaluator", "versioned_resources"},
        remark='`roles={"chief": 1, "worker": 3}` says what TensorFlow calls the ranks; `workers=4` does for others',
    ),
    Translation(
        "hops.experiment.allreduce",
        "cargobike.experiment.allreduce",
        ("train", "name", "local_logdir", "description"),
        {"map_fun": "train"},
        _LOGDIR | {"versioned_resources"},
        remark="as `collective_all_reduce`",
    ),
    Translation(
        "hops.experiment.mirrored",
        "cargobike.experiment.allreduce",
        ("train", "name", "local_logdir", "description"),
        {"train_fn": "train", "map_fun": "train", "metric_key": "metric"},
        _LOGDIR | {"evaluator", "versioned_resources"},
        remark='`roles={"chief": 1, "worker": 3}` for `MultiWorkerMirroredStrategy`',
    ),
    Translation(
        "hops.experiment.parameter_server",
        "cargobike.experiment.allreduce",
        ("train", "name", "local_logdir", "description"),
        {"train_fn": "train", "map_fun": "train", "metric_key": "metric"},
        _LOGDIR | {"evaluator", "versioned_resources"},
        remark='`roles={"chief": 1, "worker": 2, "ps": 1}` for TensorFlow\'s own servers; '
        "`experiment.parameter_server` has servers of ours, for torch",
    ),
    Translation(
        "hops.experiment.begin",
        "cargobike.experiment.launch",
        remark="put what stands between `begin` and `end` into a function: `experiment.launch(train, params={})`",
    ),
    Translation(
        "hops.experiment.end",
        "cargobike.experiment.launch",
        remark="return the metric from the function",
    ),
    Translation(
        "hops.experiment.horovod",
        "cargobike.experiment.allreduce",
        remark='`experiment.allreduce("notebook.ipynb:train", workers=4)` runs a function of a notebook',
    ),
    Translation("hops.experiment.Direction", "", remark='write `"max"` or `"min"`'),
    Translation("hops.experiment.Direction.MAX", "", literal='"max"', remark="a text"),
    Translation("hops.experiment.Direction.MIN", "", literal='"min"', remark="a text"),
    Translation(
        "hops.tflauncher.launch",
        "cargobike.experiment.launch",
        ("engine", "train", "space"),
        {"spark_session": "engine", "map_fun": "train", "args_dict": "space"},
        remark="`engine=SparkEngine(spark)`; a dict of lists is a grid already, without `util.grid_params`",
    ),
    Translation(
        "hops.allreduce.launch",
        "cargobike.experiment.allreduce",
        remark='`experiment.allreduce("notebook.ipynb:train", workers=4)` runs a function of a notebook',
    ),
    Translation("hops.tensorboard.logdir", "cargobike.tensorboard.logdir", same=True),
    Translation(
        "hops.tensorboard.visualize",
        "",
        remark="`cargobike tensorboard ID` shows an experiment, `launch(…, tensorboard=True)` shows it while it runs",
    ),
    Translation(
        "hops.tensorboard.interactive_debugger",
        "",
        remark="the debugger of TensorFlow 1 is gone: `launch(…, workers=0)` runs trials in this process, for "
        "`breakpoint()`",
    ),
    Translation("hops.tensorboard.non_interactive_debugger", "", remark="as `interactive_debugger`"),
    Translation("hops.devices.get_num_gpus", "cargobike.devices.get_num_gpus", same=True),
    Translation("hops.devices.get_gpu_uuid", "cargobike.devices.get_gpus", remark="a tuple of names"),
    Translation(
        "hops.util.grid_params", "", remark="give the dict of lists to `experiment.launch`: it is a grid already"
    ),
    Translation("hops.util.num_executors", "", remark="`workers=` of the call says how many there are"),
    Translation("hops.util.num_param_servers", "", remark='`roles={"ps": 1, …}` of `experiment.allreduce` says it'),
    Translation("hops.util.connect", "", remark="there is no server to connect to; the call is accepted"),
)
