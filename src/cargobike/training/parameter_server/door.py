"""`parameter_client`: joins a worker to its gang's parameter servers, with the options of its experiment."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch.optim import SGD, Adam, AdamW, Optimizer

from cargobike.core.errors import InvalidInputError
from cargobike.core.running.member import current
from cargobike.training.parameter_server.client import ParameterClient
from cargobike.training.parameter_server.messages import Rule, Terms
from cargobike.training.parameter_server.serving import Server
from cargobike.training.server_options import check_options
from cargobike.training.wire.handshake import check_secret


def parameter_client(
    model: torch.nn.Module,
    optimizer: Optimizer | None = None,
    *,
    servers: Sequence[str] | None = None,
    secret: bytes | None = None,
    rank: int | None = None,
    **options: Any,
) -> ParameterClient:
    """Join this worker to the gang's parameter servers; outside a gang a server in this process is used.

    Args:
        model: The model; its parameters take the servers' values, now and at each `pull`.
        optimizer: What servers do with gradients: an instance of `torch.optim.SGD`, `Adam` or `AdamW`, which is only
            read, also for the learning rate of each `push`, so that schedulers work. SGD with 0.01 if left out.
        servers: Addresses, `host:port`, instead of the gang's.
        secret: With `servers`: the secret that they were started with.
        rank: With `servers`: this worker's number; worker 0's model is where all start.
        **options: Instead of those of `experiment.parameter_server`: `staleness` (versions; None for no bound),
            `on_stale` (`drop` or `wait`), `warmup_steps` (worker 0 trains alone so long), `scale_by_delay` (divide the
            learning rate by 1 + delay), `compression` (`fp16`, `bf16`, `int8`, `topk`, `topk:0.05`),
            `parameter_compression` (`fp16`, `bf16`, `int8`), `timeout_s`. (`checkpoint_every_s` is the servers'.)

    Raises:
        InvalidInputError: If something given cannot be used.
        WaitError: If a server cannot be reached in time.
        AuthenticationError: If a server does not know the secret, or something changes what is sent.
        MissingLibraryError: If a server is on another machine, and the package cryptography is not installed.

    Example:
        >>> model = torch.nn.Linear(4, 1)
        >>> with parameter_client(model, SGD(model.parameters(), lr=0.1), compression="int8") as client:
        ...     for _ in range(3):
        ...         client.pull()
        ...         model(torch.ones(2, 4)).sum().backward()
        ...         _ = client.push()
        >>> client.applied
        3
    """
    here = current()
    chosen = check_options({**here.options, **options})
    settings: dict[str, Any] = {
        "rule": read_rule(optimizer),
        "terms": Terms(**{name: chosen[name] for name in Terms.__struct_fields__}),
        "compression": chosen["compression"],
        "parameter_compression": chosen["parameter_compression"],
        "timeout_s": float(chosen["timeout_s"]),
        "learning_rate": (lambda: None) if optimizer is None else (lambda: float(optimizer.param_groups[0]["lr"])),
    }
    if servers is not None:
        if not servers or secret is None:
            raise InvalidInputError("servers needs at least one address, and the secret that they were started with.")
        found = [partial(str, address) for address in servers]
        return ParameterClient(model, found, check_secret(secret), rank=rank or 0, **settings)
    if here.num_servers and here.gang is not None:
        addresses = [a.decode() for a in here.gang.gather("ps-address", of="servers", timeout_s=settings["timeout_s"])]
        return ParameterClient(model, [partial(str, a) for a in addresses], here.secret, rank=here.rank, **settings)
    if here.world_size > 1:
        raise InvalidInputError("This gang has no parameter servers: start it with experiment.parameter_server(…).")
    own_secret = secrets.token_bytes(32)
    server = Server(own_secret)
    server.start()
    try:
        client = ParameterClient(model, [partial(str, server.address)], own_secret, rank=0, **settings)
    except BaseException:
        server.stop()
        raise
    client.keep_server(server)
    return client


def read_rule(optimizer: Optimizer | None) -> Rule:
    """Return what servers are to do, as a torch optimizer says it.

    Raises:
        InvalidInputError: If servers cannot do that.
    """
    if optimizer is None:
        return Rule()
    if type(optimizer) not in (SGD, Adam, AdamW):
        raise InvalidInputError(
            f"Parameter servers know torch.optim.SGD, Adam and AdamW, not {type(optimizer).__name__}."
        )
    groups = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    if any(group != groups[0] for group in groups):
        raise InvalidInputError("Parameter servers treat all parameters alike: give the optimizer one parameter group.")
    settings = groups[0]
    unsupported = [name for name in ("amsgrad", "maximize", "dampening", "differentiable") if settings.get(name)]
    if unsupported:
        raise InvalidInputError(f"Parameter servers do not know {', '.join(unsupported)}.")
    lr, decay = float(settings["lr"]), float(settings["weight_decay"])
    if isinstance(optimizer, SGD):
        return Rule("sgd", lr, settings["momentum"], settings["nesterov"], weight_decay=decay)
    betas = (float(settings["betas"][0]), float(settings["betas"][1]))
    decoupled = isinstance(optimizer, AdamW) or bool(settings.get("decoupled_weight_decay"))
    return Rule("adam", lr, betas=betas, eps=settings["eps"], weight_decay=decay, decoupled=decoupled)
