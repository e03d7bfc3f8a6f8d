"""The front door for one function on several workers at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.steps import own_step
from cargobike.experiments.front import RECOVER, STALL_TIMEOUT_S, begin
from cargobike.experiments.other_words import explains_other_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from cargobike.core.records import Resources
    from cargobike.core.values.times import Seconds
    from cargobike.engines.engine import Engine
    from cargobike.experiments.driving.request import Callback
    from cargobike.experiments.results.result import Result

__all__ = ["allreduce", "collective_all_reduce", "parameter_server"]

# As in `front`, imports stand inside the functions: they load while the first process of the workers boots.


@own_step("experiment.allreduce", recover=RECOVER)
@explains_other_words
def allreduce(
    train: Callable[..., Any] | str,
    *,
    params: Mapping[str, Any] | None = None,
    workers: int | tuple[int, int] | None = None,
    roles: Mapping[str, int] | None = None,
    metric: str | None = None,
    engine: str | Engine = "local",
    resources: Resources | Mapping[str, Any] | None = None,
    name: str = "",
    description: str = "",
    seed: int | None = None,
    timeout_s: Seconds | None = None,
    stall_timeout_s: Seconds | None = STALL_TIMEOUT_S,
    working_directory: Literal["trial", "launch"] = "trial",
    durability: Literal["process", "power"] = "process",
    data: object = None,
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
) -> Result:
    """Train one function on several workers at once that find each other: torch, TensorFlow, JAX, or nothing of these.

    Each worker calls the function as one rank. Code written for `torchrun` runs unchanged. An experiment with one trial
    and a gang of all workers: everything else is as in `launch`.

    Args:
        train: A function, or `"file.py:function"`.
        params: Its arguments.
        workers: How many ranks; by default one per core, or per GPU where there are any. A pair such as `(2, 8)` starts
            with what there is, goes on with fewer when some are lost, and with more when some come back.
        roles: What TensorFlow calls the ranks, such as `{"chief": 1, "worker": 2, "ps": 1}`; then without `workers`.
        metric: Which entry of a returned dict is the result's `value`.
        engine: Where workers live.
        resources: What each rank gets, such as `Resources(gpus=1)`.
        name: A name for people; by default the function's.
        description: A sentence for people.
        seed: Each rank gets the same; by default random, and recorded.
        timeout_s: End it after this time.
        stall_timeout_s: End an attempt in which a rank stands still for so long while no rank reports anything; `None`
            to wait for ever.
        working_directory: `"trial"` gives all ranks a directory of their own, `"launch"` leaves them in this one.
        durability: As in `launch`.
        data: As in `launch`; each rank gets its own share.
        callbacks: Objects with a method `on_facts(facts)`.
        quiet: Show no progress.

    Returns:
        The result: `.value` is what rank 0 returned, `.values` what each rank returned.

    Raises:
        InvalidInputError: If something given cannot be used; nothing was started then.
        TrialFailedError: If it failed; names the rank, where it was and how far it had come.
    """
    with begin(engine) as place:
        from cargobike.core.asked import Aim, Asked, Keeping, Placement, Search  # noqa: PLC0415
        from cargobike.experiments.asking.arguments import read_limits, read_params, read_resources  # noqa: PLC0415
        from cargobike.experiments.asking.gangs import gang_of  # noqa: PLC0415
        from cargobike.experiments.asking.launching import launch_experiment  # noqa: PLC0415
        from cargobike.experiments.asking.resolving import Objects  # noqa: PLC0415

        gang = gang_of(workers, roles)
        asked = Asked(
            name=name,
            description=description,
            search=Search(params=read_params(params or {}), seed=seed),
            aim=Aim(metric=metric),
            placement=Placement(workers=gang.size, gang=gang, resources=read_resources(resources)),
            limits=read_limits(timeout_s=timeout_s, stall_timeout_s=stall_timeout_s),
            keeping=Keeping(durability=durability, working_directory=working_directory),
        )
        return launch_experiment(asked, Objects(train=train, engine=place, data=data, callbacks=callbacks, quiet=quiet))


collective_all_reduce = allreduce


@own_step("experiment.parameter_server", recover=RECOVER)
def parameter_server(
    train: Callable[..., Any] | str,
    *,
    params: Mapping[str, Any] | None = None,
    workers: int | None = None,
    servers: int = 1,
    metric: str | None = None,
    engine: str | Engine = "local",
    resources: Resources | Mapping[str, Any] | None = None,
    name: str = "",
    description: str = "",
    seed: int | None = None,
    timeout_s: Seconds | None = None,
    stall_timeout_s: Seconds | None = STALL_TIMEOUT_S,
    working_directory: Literal["trial", "launch"] = "trial",
    durability: Literal["process", "power"] = "process",
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
    **options: Any,
) -> Result:
    """Train one function on several workers that share parameters through servers, without waiting for each other.

    Args:
        train: A function, or `"file.py:function"`.
        params: Its arguments.
        workers: How many ranks train; by default one per core, or per GPU where there are any.
        servers: How many hold the parameters, each a share of them; they get no GPU.
        metric: Which entry of a returned dict is the result's `value`.
        engine: Where workers and servers live.
        resources: What each worker gets.
        name: A name for people; by default the function's.
        description: A sentence for people.
        seed: Each rank gets the same; by default random, and recorded.
        timeout_s: End it after this time.
        stall_timeout_s: As in `allreduce`.
        working_directory: As in `allreduce`.
        durability: As in `launch`.
        callbacks: Objects with a method `on_facts(facts)`.
        quiet: Show no progress.
        **options: How parameters are shared: `staleness=8`, `compression="int8"` and others; see the guide.

    Returns:
        The result: `.value` is what rank 0 returned, `.values` what each worker returned.

    Raises:
        InvalidInputError: If something given cannot be used; nothing was started then.
        TrialFailedError: If it failed; names the rank or server, where it was and how far it had come.
    """
    with begin(engine) as place:
        from cargobike.core.asked import Aim, Asked, Keeping, Placement, Search  # noqa: PLC0415
        from cargobike.experiments.asking.arguments import read_limits, read_params, read_resources  # noqa: PLC0415
        from cargobike.experiments.asking.gangs import gang_with_servers  # noqa: PLC0415
        from cargobike.experiments.asking.launching import launch_experiment  # noqa: PLC0415
        from cargobike.experiments.asking.resolving import Objects  # noqa: PLC0415

        gang = gang_with_servers(workers, servers, options)
        asked = Asked(
            name=name,
            description=description,
            search=Search(params=read_params(params or {}), seed=seed),
            aim=Aim(metric=metric),
            placement=Placement(workers=gang.size, gang=gang, resources=read_resources(resources)),
            limits=read_limits(timeout_s=timeout_s, stall_timeout_s=stall_timeout_s),
            keeping=Keeping(durability=durability, working_directory=working_directory),
        )
        return launch_experiment(asked, Objects(train=train, engine=place, callbacks=callbacks, quiet=quiet))
