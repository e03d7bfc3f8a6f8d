"""What the calls of Horovod are called here: those of starting, elastic training and Spark."""

from __future__ import annotations

from typing import Final

from cargobike.compat.translations import Translation

_RUN_ARGUMENTS: Final = (
    "func",
    "args",
    "kwargs",
    "num_proc",
    "min_num_proc",
    "max_num_proc",
    "slots",
    "reset_limit",
    "cooldown_range",
    "hosts",
    "hostfile",
    "start_timeout",
    "ssh_port",
    "ssh_identity_file",
    "disable_cache",
    "output_filename",
    "verbose",
    "use_gloo",
    "use_mpi",
    "mpi_args",
    "network_interface",
    "executable",
    "np",
    "min_np",
    "max_np",
    "host_discovery_script",
)
_SPARK_ARGUMENTS: Final = (
    "fn",
    "args",
    "kwargs",
    "num_proc",
    "start_timeout",
    "use_mpi",
    "use_gloo",
    "extra_mpi_args",
    "env",
    "stdout",
    "stderr",
    "verbose",
    "nics",
    "prefix_output_with_timestamp",
    "executable",
)
_ALLREDUCE: Final = "cargobike.experiment.allreduce"
_BY_NAME: Final = "Arguments of the function are given by name, `params={…}`; `.values` holds what each rank returned."

RUN: Final[tuple[Translation, ...]] = (
    Translation(
        "horovod.run",
        _ALLREDUCE,
        positional=_RUN_ARGUMENTS,
        renamed={"func": "train", "num_proc": "workers", "np": "workers"},
        remark=_BY_NAME,
    ),
    Translation(
        "horovod.runner.run",
        _ALLREDUCE,
        positional=_RUN_ARGUMENTS,
        renamed={"func": "train", "num_proc": "workers", "np": "workers"},
        remark=_BY_NAME,
    ),
    Translation(
        "horovod.spark.run",
        _ALLREDUCE,
        positional=_SPARK_ARGUMENTS,
        renamed={"fn": "train", "num_proc": "workers"},
        remark=f'With `engine="spark"`. {_BY_NAME}',
    ),
    Translation(
        "horovod.spark.run_elastic",
        _ALLREDUCE,
        positional=("fn", "args", "kwargs", "num_proc", "min_num_proc", "max_num_proc"),
        renamed={"fn": "train"},
        remark='`engine="spark", workers=(2, 8)`; state is what `trial.checkpoint` has saved.',
    ),
    Translation(
        "horovod.torch.elastic.run",
        _ALLREDUCE,
        remark="`workers=(2, 8)`: a gang that loses ranks goes on from its last checkpoint, with those that are there.",
    ),
    Translation(
        "horovod.torch.elastic.TorchState",
        "cargobike.torch.prepare",
        remark="`trial.checkpoint.save(run.state())` commits model, optimizer and place in the data.",
    ),
    Translation(
        "horovod.torch.elastic.ObjectState", "cargobike.trial.checkpoint", remark="`save(state)` and `load()`."
    ),
    Translation(
        "horovod.torch.elastic.State", "cargobike.trial.checkpoint", remark="Save whatever makes up your state."
    ),
    Translation("horovod.torch.elastic.State.commit", "cargobike.trial.checkpoint.save"),
    Translation("horovod.torch.elastic.State.save", "cargobike.trial.checkpoint.save"),
    Translation("horovod.torch.elastic.State.restore", "cargobike.trial.checkpoint.load"),
    Translation(
        "horovod.torch.elastic.State.sync",
        "cargobike.trial.checkpoint.load",
        remark="Every rank begins with the same checkpoint.",
    ),
    Translation(
        "horovod.torch.elastic.State.check_host_updates",
        "",
        remark="Nothing to call: a gang re-forms at the next checkpoint when workers have come.",
    ),
    Translation(
        "horovod.torch.elastic.State.register_reset_callbacks",
        "",
        remark="Nothing to register: the function begins again, and finds `trial.world_size`.",
    ),
    Translation("horovod.torch.elastic.State.on_reset", "", remark="See `register_reset_callbacks`."),
    Translation(
        "horovod.torch.elastic.ElasticSampler",
        "cargobike.torch.prepare",
        remark="`prepare(loader=…)` deals out the rest of the epoch, each sample once.",
    ),
    Translation(
        "horovod.common.exceptions.HostsUpdatedInterrupt", "", remark="Nothing to catch: a gang re-forms by itself."
    ),
)
