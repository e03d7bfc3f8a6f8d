"""An optimizer that steps by itself and then combines what it changed with the changes of other ranks, by Adasum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from cargobike.compat.horovod.common import operations
from cargobike.compat.horovod.common.process_sets import ProcessSet
from cargobike.compat.horovod.common.reductions import Adasum
from cargobike.compat.horovod.torch.compression import Compressor


class AdasumStep:
    """What an optimizer's own class is mixed with: ranks combine what each step changes."""

    param_groups: list[dict[str, Any]]

    def _begin(
        self,
        named: list[tuple[str, torch.nn.Parameter]],
        compression: type[Compressor],
        passes: int,
        process_set: ProcessSet,
    ) -> None:
        self.backward_passes_per_step = passes
        self.op, self.process_set = Adasum, process_set
        self._named, self._compression = named, compression

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Add up gradients of so many backward passes: `step` is called after them."""
        self.backward_passes_per_step = passes

    def synchronize(self) -> None:
        """Do nothing: gradients are not exchanged, what they change is."""

    def skip_synchronize(self) -> NoReturn:
        """Refuse: ranks would part.

        Raises:
            AssertionError: Always.
        """
        raise AssertionError("with op=hvd.Adasum synchronization cannot be skipped.")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step, and combine what was changed with what other ranks changed."""
        parameters = [one for _, one in self._named if one.requires_grad]
        before = [parameter.detach().clone() for parameter in parameters]
        loss = super().step(closure)  # type: ignore[misc]
        with torch.no_grad():
            changes = [one.detach() - old for one, old in zip(parameters, before, strict=True)]
            pairs = [self._compression.compress(change) for change in changes]
            sent = [tensor for tensor, _ in pairs]
            combined = operations.reduction(sent, "adasum.step", Adasum, process_set=self.process_set).run()
            for one, old, change, (_, context) in zip(parameters, before, combined, pairs, strict=True):
                one.copy_(old + self._compression.decompress(change, context))
        return loss
