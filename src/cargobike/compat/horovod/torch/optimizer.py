"""An optimizer that reduces gradients over ranks while backward still computes others."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch.nn import Parameter
from torch.utils.weak import WeakTensorKeyDictionary

from cargobike.compat.horovod.common.basics import size
from cargobike.compat.horovod.common.process_sets import ProcessSet, global_process_set
from cargobike.compat.horovod.common.reductions import Adasum, Average, ReduceOp, choose_op
from cargobike.compat.horovod.torch import buckets
from cargobike.compat.horovod.torch.adasum_optimizer import AdasumStep
from cargobike.compat.horovod.torch.buckets import Bucket
from cargobike.compat.horovod.torch.compression import Compression, Compressor
from cargobike.compat.horovod.torch.sparse import sparse_allreduce_async
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError

_hooks: Any = WeakTensorKeyDictionary()

_Optimizer = TypeVar("_Optimizer", bound=torch.optim.Optimizer)


class _Reducing:
    """What an optimizer's own class is mixed with: reduces gradients before each step."""

    param_groups: list[dict[str, Any]]

    def _begin(
        self,
        named: list[tuple[str, Parameter]],
        compression: type[Compressor],
        passes: int,
        op: ReduceOp,
        scales: tuple[float, float],
        groups: Sequence[Sequence[Parameter]] | int,
        sparse_as_dense: bool,
        process_set: ProcessSet,
    ) -> None:
        self.backward_passes_per_step = passes
        self.op, self.process_set, self.sparse_as_dense = op, process_set, sparse_as_dense
        self._named, self._compression, self._scales, self._groups = named, compression, scales, groups
        self._sparse: dict[Parameter, Callable[[], torch.Tensor] | None] = {}
        self._synchronized = False
        self._should_synchronize = True
        self._passes_left: dict[Parameter, int] = {}
        self._reduces = bool(process_set.included()) and (size() > 1 or os.environ.get("HOROVOD_ELASTIC") == "1")
        self._divide()
        if self._reduces:
            for parameter in self._bucket_of:
                earlier = _hooks.pop(parameter, None)
                if earlier is not None:  # of an optimizer that this one stands in for, as when a cell is run again
                    earlier.remove()
                _hooks[parameter] = parameter.register_post_accumulate_grad_hook(self._hook)

    def _divide(self) -> None:
        owned = {parameter for group in self.param_groups for parameter in group["params"]}
        named = [
            (name, one) for name, one in self._named if one in owned and one.requires_grad and one not in self._sparse
        ]
        groups = self._groups
        if isinstance(groups, int):
            count = min(groups, len(named))
            groups = [[one for _, one in named[i::count]] for i in range(count)] if count else []
        self._buckets = buckets.divide(named, self._compression, groups)
        self._bucket_of: dict[Parameter, Bucket | None] = dict.fromkeys(self._sparse)
        self._bucket_of.update({parameter: bucket for bucket in self._buckets for parameter in bucket.parameters})
        self._passes_left = dict.fromkeys(self._bucket_of, self.backward_passes_per_step)

    def _hook(self, parameter: Parameter) -> None:
        left = self._passes_left[parameter]
        if left <= 0:
            raise AssertionError(
                "Gradients were computed more than backward_passes_per_step times before step(): increase "
                "backward_passes_per_step to add up more passes."
            )
        self._passes_left[parameter] = left - 1
        if left == 1:
            self._ready(parameter)

    def _ready(self, parameter: Parameter) -> None:
        gradient = parameter.grad
        if gradient is not None and gradient.is_sparse and not self.sparse_as_dense:
            name = next(name for name, one in self._named if one is parameter)
            self._sparse[parameter] = sparse_allreduce_async(gradient, f"gradient.{name}", self.op, self.process_set)
        bucket = self._bucket_of[parameter]
        if bucket is not None and bucket.ready():
            bucket.send(self.op, self._scales, self.process_set, self._sparse)

    @property
    def _is_underway(self) -> bool:
        return any(bucket.pending is not None for bucket in self._buckets) or any(self._sparse.values())

    def synchronize(self) -> None:
        """Wait until the gradients of all parameters are those of all ranks; those that had none count as zeros."""
        if self._reduces:
            known = set(self._sparse)
            for bucket in self._buckets:
                if bucket.pending is None:
                    for parameter in bucket.parameters:
                        if self._passes_left[parameter] > 0 and _is_sparse(parameter) and not self.sparse_as_dense:
                            self._ready(parameter)
                    if bucket.pending is None:
                        bucket.send(self.op, self._scales, self.process_set, self._sparse)
            were_sparse = [one for one in self._bucket_of if _is_sparse(one)] if self.sparse_as_dense else []
            for bucket in self._buckets:
                bucket.receive(self._sparse)
            for parameter in were_sparse:
                parameter.grad = parameter.grad.to_sparse() if parameter.grad is not None else None
            for parameter, finish in self._sparse.items():
                if finish is not None:
                    parameter.grad = finish()
                    self._sparse[parameter] = None
            self._passes_left = dict.fromkeys(self._bucket_of, self.backward_passes_per_step)
            if set(self._sparse) != known:  # they need no room among the others any more
                self._divide()
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Let `step` inside not synchronize: `synchronize` was called, and gradients were clipped after it."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Add up gradients of so many backward passes before they are reduced."""
        self.backward_passes_per_step = _check_passes(passes)
        self._passes_left = dict.fromkeys(self._bucket_of, passes)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Reduce gradients and change the parameters; a closure's gradients are reduced each time it is called."""
        if self._should_synchronize and closure is None:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() was called after optimizer.synchronize() and reduces gradients again: put it "
                    "into 'with optimizer.skip_synchronize():'.",
                    stacklevel=2,
                )
            self.synchronize()
        self._synchronized = False
        if closure is None or not self._should_synchronize:
            return super().step(closure)  # type: ignore[misc]
        given = closure

        def synchronized() -> Any:
            loss = given()
            self.synchronize()
            self._synchronized = False
            return loss

        return super().step(synchronized)  # type: ignore[misc]

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Forget gradients.

        Raises:
            AssertionError: Between `backward` and `step`, while gradients are on their way.
        """
        if self._is_underway:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
                "optimizer.synchronize(): gradients are on their way to other ranks."
            )
        super().zero_grad(*args, **kwargs)  # type: ignore[misc]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """Load a state; what is on its way is forgotten."""
        for bucket in self._buckets:
            bucket.forget()
        self._sparse = dict.fromkeys(self._sparse)
        self._synchronized, self._should_synchronize = False, True
        self._passes_left = dict.fromkeys(self._bucket_of, self.backward_passes_per_step)
        super().load_state_dict(*args, **kwargs)  # type: ignore[misc]


def _is_sparse(parameter: Parameter) -> bool:
    return parameter.grad is not None and parameter.grad.is_sparse


@formerly("horovod.torch.DistributedOptimizer")
def DistributedOptimizer(
    optimizer: _Optimizer,
    named_parameters: Iterable[tuple[str, Parameter]] | None = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: ReduceOp | int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Sequence[Sequence[Parameter]] | int | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> _Optimizer:
    """Return an optimizer of the same class that reduces gradients over ranks before each step.

    Args:
        optimizer: Its parameters, options and state are shared with the new one.
        named_parameters: Names for all its parameters; `model.named_parameters()`.
        compression: What makes gradients smaller on their way.
        backward_passes_per_step: How many backward passes are added up before gradients are reduced.
        op: How; `Average`, `Sum` or `Adasum`.
        gradient_predivide_factor: Part of the mean that is taken before gradients are added up.
        num_groups: In how many groups gradients travel; an older name for `groups`.
        groups: In how many groups gradients travel, or lists of the parameters of each.
        sparse_as_dense: Reduce sparse gradients as dense ones.
        process_set: Over which ranks.

    Raises:
        ValueError: If something given cannot be used.
    """
    chosen = choose_op(op)
    if gradient_predivide_factor != 1.0 and chosen != Average:
        raise InvalidInputError("gradient_predivide_factor divides a mean: it goes with op=hvd.Average only.")
    if num_groups:
        warnings.warn("num_groups is called groups now.", DeprecationWarning, stacklevel=3)
        groups = groups if groups is not None else num_groups
    named = _check_names(optimizer, named_parameters)
    passes = _check_passes(backward_passes_per_step)
    _check_groups(groups)
    mixed = AdasumStep if chosen == Adasum and size() > 1 else _Reducing
    kind = type(type(optimizer).__name__, (mixed, type(optimizer)), {})
    made: Any = object.__new__(kind)
    made.__dict__.update(optimizer.__dict__)
    made.__dict__.pop("step", None)  # a learning rate schedule has put it there, bound to the other optimizer
    if isinstance(made, AdasumStep):
        made._begin(named, compression, passes, process_set)
    else:
        scales = (1.0 / gradient_predivide_factor, float(gradient_predivide_factor))
        made._begin(named, compression, passes, chosen, scales, groups or (), sparse_as_dense, process_set)
    distributed: _Optimizer = made
    return distributed


def _check_names(
    optimizer: torch.optim.Optimizer, named_parameters: Iterable[tuple[str, Parameter]] | None
) -> list[tuple[str, Parameter]]:
    own = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if named_parameters is None:
        return [
            (f"noname.{i}.{j}", parameter)
            for i, group in enumerate(optimizer.param_groups)
            for j, parameter in enumerate(group["params"])
        ]
    named = list(named_parameters)
    if any(not isinstance(pair, tuple) for pair in named):
        raise InvalidInputError(
            "named_parameters must be pairs of name and parameter, as model.named_parameters() gives them."
        )
    twice = sorted(name for name, count in Counter(name for name, _ in named).items() if count > 1)
    if twice:
        raise InvalidInputError(f"names in named_parameters must be unique, these are not: {', '.join(twice)}.")
    known = {id(parameter) for _, parameter in named}
    missing = [tuple(parameter.shape) for parameter in own if id(parameter) not in known]
    if missing:
        raise InvalidInputError(
            f"named_parameters has no name for {len(missing)} of the optimizer's parameters, of shapes "
            f"{', '.join(map(str, missing[:5]))}: give model.named_parameters() of the whole model."
        )
    return named


def _check_passes(passes: int) -> int:
    if passes <= 0:
        raise InvalidInputError(f"backward_passes_per_step must be a whole number above 0, {passes!r} was given.")
    return passes


def _check_groups(groups: Sequence[Sequence[Parameter]] | int | None) -> None:
    if groups is None:
        return
    if isinstance(groups, int):
        if groups <= 0:
            raise InvalidInputError(f"groups must be above 0 or lists of parameters, {groups} was given.")
        return
    if not isinstance(groups, list | tuple):
        raise InvalidInputError(f"groups must be a number or lists of parameters, not {type(groups).__name__}.")
    members = [one for group in groups for one in group]
    if any(not isinstance(one, torch.Tensor) for one in members):
        raise InvalidInputError("groups must hold tensors: the parameters of the model.")
    if len({id(one) for one in members}) < len(members):
        raise InvalidInputError("a parameter may be in one of the groups only.")
