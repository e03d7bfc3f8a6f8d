"""The front door: search a function, look experiments up again.

Example:
    >>> from cargobike import Searchspace, experiment
    >>> def train(x):
    ...     return -((x - 3) ** 2)
    >>> result = experiment.launch(train, {"x": [1, 2, 3]}, quiet=True)
    >>> result.best.params
    {'x': 3}
"""

from __future__ import annotations

from cargobike.data.front import inference
from cargobike.experiments.front import command, launch, list, load, reproduce, resume
from cargobike.experiments.gang_front import allreduce, collective_all_reduce, parameter_server

__all__ = [
    "allreduce",
    "collective_all_reduce",
    "command",
    "inference",
    "launch",
    "list",
    "load",
    "parameter_server",
    "reproduce",
    "resume",
]
