"""`prepare`: makes a plain training loop distributed, with nothing hidden: it returns what the loop is to use."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.training import collectives
from cargobike.training.compression_hooks import register_hook
from cargobike.training.forwarding import ForwardHooks, check_precision
from cargobike.training.loading import (
    PreparedLoader,
    check_loader,
    is_sharded,
    is_stream,
    keeps_order,
    move,
    shard_loader,
    steps_agree,
)
from cargobike.training.low_communication import OuterLoop
from cargobike.training.pace import Pace
from cargobike.training.parameter_server.client import ParameterClient
from cargobike.training.parameter_server.door import parameter_client
from cargobike.training.parameter_server.optimizer import ServerOptimizer
from cargobike.training.placed import KnowsItsPlace, PlacedLoader, refuse_wrapped
from cargobike.training.process_group import Group, join_group
from cargobike.training.replicated import wrap_ddp
from cargobike.training.stepping import PacedOptimizer, StepWatch
from cargobike.training.strategies import (
    DDP,
    FSDP,
    Cast,
    Compression,
    DiLoCo,
    LocalSGD,
    ParameterServer,
    Strategy,
    Zero1,
    name_of,
    read_compression,
    read_strategy,
)
from cargobike.training.traffic import Traffic
from cargobike.training.uneven import MEANINGS, Policy, choose_policy

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Prepared:
    """What `prepare` made, and what it chose. Unpacks to the objects that were given, in that order.

    Attributes:
        model: The model to call; DDP's wrapper, or the model itself.
        optimizer: The optimizer to step.
        loader: The loader to draw from: this rank's share.
        strategy: How the gang trains.
        uneven: What happens to samples that do not divide evenly: `drop`, `pad` or `join`; None without a loader.
        traffic: What this rank has sent so far.
        client: With parameter servers: the connection to them.
        group: This rank's place: `rank`, `world_size`, `local_rank`, `device`, `is_main`.
    """

    group: Group
    strategy: Strategy
    traffic: Traffic = field(default_factory=Traffic)
    model: Any = None
    optimizer: Any = None
    loader: Any = None
    uneven: Policy | None = None
    outer: OuterLoop | None = None
    client: ParameterClient | None = None
    _stepping: StepWatch = field(default_factory=StepWatch)

    def __iter__(self) -> Iterator[Any]:
        return (thing for thing in (self.model, self.optimizer, self.loader) if thing is not None)

    @property
    def plain_model(self) -> Any:
        """The model without DDP around it: what to save or to evaluate."""
        return getattr(self.model, "module", self.model) if _is_ddp(self.model) else self.model

    def sync(self) -> None:
        """Bring the ranks' models together: after the last step of local SGD or DiLoCo. Every rank must call it."""
        if self.outer is not None:
            self.outer.sync()

    def state(self) -> dict[str, Any]:
        """Return everything a later attempt needs, whole, in rank 0 (the others get an empty dict); all must call it.

        Goes with `trial.checkpoint.save`, which only rank 0 follows. What is saved fits every strategy and any number
        of ranks. It holds where training stands in its data, too, also in the middle of an epoch. Ranks that train
        alone for a while come together first.
        """
        from cargobike.training.states import whole_state  # noqa: PLC0415 - a second to import

        self.sync()
        state = whole_state(
            self.plain_model, _inner(self.optimizer), is_divided=self._is_divided, is_main=self.group.is_main
        )
        if state:
            state.update(self._place_in_data())
            state["outer"] = self.outer.state_dict() if self.outer is not None else None
        return state

    def load(self, state: dict[str, Any]) -> None:
        """Go on from such a state, in every rank: `run.load(trial.checkpoint.load())`."""
        from cargobike.training.states import load_whole_state  # noqa: PLC0415 - a second to import

        load_whole_state(self.plain_model, _inner(self.optimizer), state, is_divided=self._is_divided)
        self._go_on_in_data(state)
        if self.outer is not None:
            self.outer.load_state_dict(state.get("outer"))

    def sharded_state(self) -> dict[str, Any]:
        """Return this rank's part of what `state` returns, for `trial.checkpoint.save_sharded` and `load_sharded`."""
        from cargobike.training.states import sharded_state  # noqa: PLC0415 - a second to import

        self.sync()
        with self._stepping.ignored():  # torch steps an optimizer that has no state yet
            state = sharded_state(self.plain_model, _inner(self.optimizer))
        state.update(self._place_in_data())
        if self.outer is not None:
            state["outer"] = self.outer.state_dict()
        return state

    def load_sharded(self, state: dict[str, Any]) -> None:
        """Go on from the parts that `trial.checkpoint.load_sharded` has filled in."""
        from cargobike.training.states import load_sharded_state  # noqa: PLC0415 - a second to import

        with self._stepping.ignored():
            load_sharded_state(self.plain_model, _inner(self.optimizer), state)
        self._go_on_in_data(state)
        if self.outer is not None:
            self.outer.load_state_dict(state.get("outer"))

    def _place_in_data(self) -> dict[str, Any]:
        """Return where training stands in its data: one number to read, and one value that is stored as it is."""
        place = self.loader.state() if self.loader is not None else {"epoch": 0}
        return {"epoch": place["epoch"], "data": json.dumps(place)}

    def _go_on_in_data(self, state: dict[str, Any]) -> None:
        if self.loader is not None:  # states of earlier versions have only the epoch, or nothing
            self.loader.load_state(json.loads(state["data"]) if "data" in state else {"epoch": state.get("epoch", 0)})

    @property
    def _is_divided(self) -> bool:
        return isinstance(self.strategy, FSDP) and self.group.world_size > 1

    def barrier(self, timeout_s: Seconds | None = None) -> None:
        """Wait for all ranks; the error after the deadline names those that are missing."""
        wait_s = read_seconds("timeout_s", timeout_s, may_be_zero=True) or self.group.timeout_s
        collectives.barrier("prepared.barrier", wait_s)


def prepare(
    model: torch.nn.Module | None = None,
    optimizer: Optimizer | None = None,
    loader: DataLoader[Any] | KnowsItsPlace | None = None,
    *,
    strategy: str | Strategy = "ddp",
    uneven: str = "auto",
    precision: str = "fp32",
    accumulate: int = 1,
    compression: str | Compression | None = None,
    sync_every: int | None = None,
    shard: bool = True,
    timeout_s: Seconds | None = None,
) -> Prepared:
    """Prepare a model, an optimizer and a loader, or some of them, for training by the whole gang.

    The loop stays as it is. Outside a gang, or in a gang of one, it also computes what it computed before (with DiLoCo,
    after its outer steps).

    Args:
        model: The model, before its first step.
        optimizer: Its optimizer.
        loader: The training data; each rank gets a share of every epoch, in an order that changes with the epoch. A
            `data.Loader`, such as `launch(data=…)` feeds, shares its rows itself.
        strategy: `ddp`, `zero1`, `fsdp`, `local_sgd`, `diloco` or `parameter_server`, or a record such as `DiLoCo(…)`.
        uneven: What to do when samples do not divide evenly: `drop`, `pad`, `join`; `auto` chooses, and says what.
        precision: `fp32`, or `bf16` for autocast in the forward pass.
        accumulate: How many batches make one step.
        compression: Of what is exchanged: `bf16`, `fp16`, `powersgd`, `topk`, or a record such as `TopK(0.01)`.
        sync_every: For local SGD and DiLoCo: after how many steps ranks come together.
        shard: Whether to divide the data; False if each rank's loader already reads its own part.
        timeout_s: Deadline of the meeting and of each collective; 300 s if left out.

    Raises:
        InvalidInputError: If something given cannot be used.
        WaitError: If not all ranks come in time; the message names those that are missing.

    Example:
        >>> model = torch.nn.Linear(4, 2)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> data = torch.utils.data.TensorDataset(torch.randn(8, 4))
        >>> model, optimizer, loader = prepare(model, optimizer, DataLoader(data, batch_size=4))
    """
    chosen = read_strategy(strategy, sync_every)
    packed = read_compression(compression, chosen)
    check_precision(precision)
    _check(model, optimizer, loader, chosen, accumulate)
    prepared = Prepared(join_group(timeout_s), chosen)
    pace = Pace(accumulate)
    if model is not None:
        _prepare_model(prepared, model, optimizer, packed, pace=pace, precision=precision)
    if isinstance(loader, DataLoader):
        _prepare_loader(prepared, loader, uneven, pace, shard=shard)
    elif loader is not None:
        prepared.loader = PlacedLoader(loader, prepared.group, pace, move)
    _report(prepared, precision, accumulate, packed)
    return prepared


def _check(model: Any, optimizer: Any, loader: Any, strategy: Strategy, accumulate: int) -> None:
    mistakes = []
    if model is not None and not isinstance(model, torch.nn.Module):
        mistakes.append(f"model must be a torch.nn.Module, not {type(model).__name__}")
    if optimizer is not None and not isinstance(optimizer, Optimizer):
        mistakes.append(f"optimizer must be a torch.optim.Optimizer, not {type(optimizer).__name__}")
    if optimizer is not None and model is None:
        mistakes.append("an optimizer needs its model beside it: prepare(model, optimizer)")
    if model is None and loader is None and not mistakes:
        mistakes.append("nothing was given: prepare(model, optimizer, loader), or some of them")
    if _is_ddp(model):
        mistakes.append("the model is inside DistributedDataParallel already: give the model itself")
    if type(accumulate) is not int or accumulate < 1:
        mistakes.append(f"accumulate must be a whole number of at least 1, not {accumulate!r}")
    elif accumulate > 1 and optimizer is None:
        mistakes.append(f"accumulate={accumulate} needs the optimizer, which waits for it")
    if model is not None and optimizer is None and isinstance(strategy, LocalSGD | DiLoCo | Zero1 | ParameterServer):
        mistakes.append(f"strategy {name_of(strategy)!r} needs the optimizer")
    if mistakes:
        raise InvalidInputError("prepare cannot use what it was given:", mistakes)
    if loader is not None and not isinstance(loader, DataLoader) and isinstance(loader, KnowsItsPlace):
        return
    if loader is not None:
        check_loader(loader)
        refuse_wrapped(loader)


def _is_ddp(model: Any) -> bool:
    return isinstance(model, torch.nn.parallel.DistributedDataParallel)


def _prepare_model(
    prepared: Prepared, model: Any, optimizer: Any, compression: Compression | None, *, pace: Pace, precision: str
) -> None:
    group, strategy = prepared.group, prepared.strategy
    model = model.to(group.device) if group.device.type != "cpu" else model
    prepared.model, prepared.optimizer = model, optimizer
    ForwardHooks(precision, pace, group.device.type).attach(model)
    after_step = None
    if isinstance(strategy, LocalSGD | DiLoCo):
        cast = compression if isinstance(compression, Cast) else None
        prepared.outer = OuterLoop(model, strategy, group, prepared.traffic, cast)
        after_step = prepared.outer.count_step
    elif isinstance(strategy, ParameterServer):
        prepared.client = parameter_client(model, optimizer)
        prepared.traffic = prepared.client.traffic
        prepared.optimizer = ServerOptimizer(optimizer, prepared.client, prepared._stepping.stepped)
    elif group.world_size > 1 and isinstance(strategy, FSDP):
        # A second of imports each: only for programs that use it.
        from cargobike.training.fully_sharded import wrap_fsdp  # noqa: PLC0415

        wrap_fsdp(model, optimizer, strategy, group)
        pace.call_on_change(model.set_requires_gradient_sync)
    elif group.world_size > 1 and isinstance(strategy, DDP | Zero1):
        prepared.model = wrap_ddp(model, strategy, group)
        pace.call_on_change(lambda syncs: setattr(prepared.model, "require_backward_grad_sync", syncs))
        if isinstance(strategy, Zero1):
            from cargobike.training.zero_redundancy import divide_optimizer  # noqa: PLC0415

            prepared.optimizer = divide_optimizer(optimizer)
        if compression is not None:
            register_hook(prepared.model, compression, prepared.traffic)
    if optimizer is not None:
        if not isinstance(strategy, ParameterServer):
            prepared.optimizer.register_step_post_hook(lambda *_: prepared._stepping.stepped())
        if group.world_size > 1 and isinstance(strategy, DDP | Zero1 | FSDP) and compression is None:
            _count_whole_gradients(prepared)
        if pace.accumulate > 1 or after_step is not None:
            prepared.optimizer = PacedOptimizer(prepared.optimizer, pace, after_step)


def _count_whole_gradients(prepared: Prepared) -> None:
    """Count each step's gradients; with FSDP also the parameters, which are gathered forward and backward."""
    sizes = sum(p.numel() * p.element_size() for p in prepared.model.parameters() if p.requires_grad)
    bytes_per_step = sizes * 3 if isinstance(prepared.strategy, FSDP) else sizes
    prepared._stepping.call(lambda: prepared.traffic.add(bytes_per_step, bytes_per_step))


def _prepare_loader(prepared: Prepared, loader: Any, uneven: str, pace: Pace, *, shard: bool) -> None:
    group = prepared.group
    trains = prepared.model is not None
    can_join = isinstance(prepared.strategy, DDP | Zero1 | ParameterServer)
    if isinstance(prepared.strategy, ParameterServer) and uneven == "auto":
        uneven = "join"  # no rank waits for another
    shares = group.world_size > 1 and shard and not is_sharded(loader)
    policy = choose_policy(
        uneven,
        is_stream=is_stream(loader) or (not shares and group.world_size > 1),
        trains=trains,
        shuffles=not keeps_order(loader),
        can_join=can_join,
        accumulate=pace.accumulate,
        waits=not isinstance(prepared.strategy, ParameterServer),
    )
    if type(loader) not in (DataLoader, PreparedLoader):
        _log.warning("%s is a DataLoader of its own kind; what it adds to one is not kept", type(loader).__name__)
    ours: PreparedLoader = shard_loader(loader, group, policy, shard=shard)
    joinables: list[Any] = []
    agrees = False
    if group.world_size > 1 and trains:
        if isinstance(prepared.strategy, ParameterServer):
            pass
        elif policy == "join":
            joinables = [thing for thing in (prepared.model, _inner(prepared.optimizer)) if hasattr(thing, "join_hook")]
        elif is_stream(ours):
            agrees = True
        elif not steps_agree(len(ours), group):
            if shares:
                raise InvalidInputError(
                    f"Ranks have data of different lengths (rank {group.rank} would take {len(ours)} steps). Make the "
                    "same dataset in every rank, or, if each has read its own part, say shard=False."
                )
            agrees = True
    ours.attach(group, policy, pace, joinables, agrees)
    ours.progress.expects_steps = prepared.optimizer is not None
    prepared._stepping.call(ours.progress.step)
    prepared.loader, prepared.uneven = ours, policy


def _inner(optimizer: Any) -> Any:
    return optimizer.inner if isinstance(optimizer, PacedOptimizer) else optimizer


def _report(prepared: Prepared, precision: str, accumulate: int, compression: Compression | None) -> None:
    group = prepared.group
    words = [f"rank {group.rank} of {group.world_size} on {group.device}", f"strategy {name_of(prepared.strategy)}"]
    if group.backend:
        words.append(f"{group.backend}, deadline {group.timeout_s:g} s")
    if prepared.uneven is not None and group.world_size > 1:
        words.append(f"uneven data: {prepared.uneven} ({MEANINGS[prepared.uneven]})")
    if precision != "fp32":
        words.append(f"autocast {precision}")
    if accumulate > 1:
        words.append(f"{accumulate} batches a step")
    if compression is not None:
        words.append(f"compression {compression}")
    _log.log(logging.INFO if group.is_main else logging.DEBUG, "prepared: %s", "; ".join(words))
