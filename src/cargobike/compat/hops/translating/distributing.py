"""Distributed training: roles for the workers, and one call of ours."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from cargobike import experiment as ours
from cargobike.compat.hops.translating.functions import alone_on_its_gpus, checked, keeping_files
from cargobike.compat.hops.translating.place import Place
from cargobike.compat.hops.translating.returned import Returned, outputs_of, path_of
from cargobike.core import settings
from cargobike.core.errors import InvalidInputError

_LEAST_WITH_EVALUATOR = 3


@dataclass(frozen=True, slots=True)
class Training:
    """What was asked for besides the function.

    Attributes:
        name: For people.
        description: For people.
        key: Which entry of a returned dict is the metric.
        evaluator: Whether one of the workers evaluates instead of training.
        data: What each worker gets its share of.
        model: Handed to the function as it is.
    """

    name: str
    description: str
    key: str | None
    evaluator: bool
    data: object = None
    model: object = None


def distribute(
    call: str, train: object, said: Training, spark: object = None, *, with_servers: bool = False
) -> Returned:
    """Run a function on all workers at once, and return the path and what the chief returned."""
    place = Place(spark)
    servers = max(1, place.servers) if with_servers else 0
    function = checked(train, call)
    fixed = {"model": said.model} if said.model is not None else {}
    if fixed and "model" not in inspect.signature(function).parameters:
        raise InvalidInputError(f"model= was given, but {function.__name__} has no parameter of that name.")
    result = ours.allreduce(
        alone_on_its_gpus(keeping_files(function, **fixed)),
        roles=roles_of(place.executors, servers=servers, evaluator=said.evaluator),
        metric=said.key,
        name=said.name,
        description=said.description,
        engine=place.engine,
        data=said.data,
    )
    return Returned(path_of(result), (outputs_of(result, result.trials[0]),), result)


def roles_of(executors: int, *, servers: int = 0, evaluator: bool = False) -> dict[str, int]:
    """Return how many workers have each role of TensorFlow's.

    Raises:
        InvalidInputError: If there are too few workers.

    Example:
        >>> roles_of(4, servers=1)
        {'chief': 1, 'worker': 2, 'ps': 1}
    """
    training = executors - servers
    if training < 1:
        raise InvalidInputError(
            f"{servers} of {executors} workers are parameter servers, so none is left to train; ask for more workers "
            f"({settings.COMPAT_WORKERS}, or spark.executor.instances) or for fewer servers (NUM_TF_PS)."
        )
    if evaluator and training < _LEAST_WITH_EVALUATOR:
        raise InvalidInputError(f"evaluator=True needs at least 3 workers besides servers; there are {training}.")
    roles = {"chief": 1, "worker": training - 1 - evaluator, "ps": servers, "evaluator": int(evaluator)}
    return {role: count for role, count in roles.items() if count}
