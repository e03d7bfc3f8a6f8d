"""Local SGD and DiLoCo: ranks train alone for many steps, then agree.

Every `sync_every` steps each rank says how far it has come from the point that all had last agreed on. The mean of
these distances is a gradient for the outer optimizer, SGD with Nesterov's momentum, which moves that point. With an
outer learning rate of 1 and no momentum this is averaging the models: local SGD.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from cargobike.training.process_group import Group, all_reduce_, broadcast_
from cargobike.training.strategies import Cast, DiLoCo, LocalSGD
from cargobike.training.traffic import Traffic


class OuterLoop:
    """Counts inner steps and brings the ranks together when it is time."""

    def __init__(
        self,
        model: torch.nn.Module,
        strategy: DiLoCo | LocalSGD,
        group: Group,
        traffic: Traffic,
        compression: Cast | None = None,
    ) -> None:
        self.syncs = 0
        self._group, self._traffic = group, traffic
        self._every = strategy.sync_every
        self._lr = strategy.outer_lr if isinstance(strategy, DiLoCo) else 1.0
        self._momentum = strategy.outer_momentum if isinstance(strategy, DiLoCo) else 0.0
        self._wire_type = {None: None, "bf16": torch.bfloat16, "fp16": torch.float16}[
            compression.kind if compression else None
        ]
        self._steps_alone = 0
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._buffers = [b for b in model.buffers() if b.is_floating_point()]
        with torch.no_grad():
            broadcast_([t.data for t in _all_tensors(model)], group, "take the first weights of rank 0")
            self._anchors = [p.detach().clone() for p in self._parameters]
            self._velocities = [torch.zeros_like(p) for p in self._anchors] if self._momentum else []

    def count_step(self) -> None:
        """Count an inner step, and come together if it is time."""
        self._steps_alone += 1
        if self._steps_alone >= self._every:
            self.sync()

    @torch.no_grad()
    def sync(self) -> None:
        """Come together now: at the end of training, or before validation. Every rank must call it."""
        if self._steps_alone == 0:
            return
        self._steps_alone = 0
        self.syncs += 1
        world_size = self._group.world_size
        if world_size == 1 and self._lr == 1.0 and not self._momentum:
            return
        ways = [anchor - p for anchor, p in zip(self._anchors, self._parameters, strict=True)]
        means = self._average(ways + [b.clone() for b in self._buffers])
        for index, (p, anchor) in enumerate(zip(self._parameters, self._anchors, strict=True)):
            way = means[index]
            if self._momentum:
                self._velocities[index].mul_(self._momentum).add_(way)
                way = way + self._momentum * self._velocities[index]
            anchor.sub_(way, alpha=self._lr)
            p.copy_(anchor)
        for b, mean in zip(self._buffers, means[len(ways) :], strict=True):
            b.copy_(mean)

    def _average(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        if self._group.world_size == 1 or not tensors:
            return tensors
        flat = torch.cat([tensor.reshape(-1).float() for tensor in tensors])
        raw_bytes = flat.nbytes
        if self._wire_type is not None:
            flat = flat.div_(self._group.world_size).to(self._wire_type)
        all_reduce_(flat, self._group, "average their models")
        self._traffic.add(flat.nbytes, raw_bytes)
        flat = flat.float()
        if self._wire_type is None:
            flat.div_(self._group.world_size)
        pieces = flat.split([tensor.numel() for tensor in tensors])
        return [piece.view_as(tensor).to(tensor.dtype) for piece, tensor in zip(pieces, tensors, strict=True)]

    def state_dict(self) -> dict[str, object]:
        """Return what a later attempt needs to go on: the point agreed on, and the momentum."""
        return {
            "anchors": [anchor.clone() for anchor in self._anchors],
            "velocities": [velocity.clone() for velocity in self._velocities],
            "steps_alone": self._steps_alone,
            "syncs": self.syncs,
        }

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, object] | None) -> None:
        """Go on from such a state; without one, from the model as it is now."""
        if state is None:
            for anchor, p in zip(self._anchors, self._parameters, strict=True):
                anchor.copy_(p)
            return
        for name, own in (("anchors", self._anchors), ("velocities", self._velocities)):
            saved = state[name]
            assert isinstance(saved, list)
            for tensor, value in zip(own, saved, strict=True):
                tensor.copy_(value)
        self._steps_alone = int(str(state["steps_alone"]))
        self.syncs = int(str(state["syncs"]))


def _all_tensors(model: torch.nn.Module) -> Iterable[torch.Tensor]:
    yield from model.parameters()
    yield from model.buffers()
