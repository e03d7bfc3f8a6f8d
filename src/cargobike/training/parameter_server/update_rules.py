"""How gradients change parameters on a server: SGD with momentum, Adam and AdamW; whole tensors, or only some rows.

Written out here, in place, because a server needs them for rows too, and into other memory while readers use
the old. Rows that no gradient touches keep their momentum as it is ("lazy" Adam), as is usual for embeddings.
"""

from __future__ import annotations

import torch

from cargobike.training.parameter_server.messages import Rule


class UpdateRule:
    """One rule with its state for one tensor."""

    def __init__(self, rule: Rule, weights: torch.Tensor) -> None:
        self.rule = rule
        self.weights = weights
        self.steps = 0
        slots = {"sgd": 1 if rule.momentum else 0, "adam": 2}[rule.kind]
        self.slots = [torch.zeros_like(weights) for _ in range(slots)]

    def apply(self, gradient: torch.Tensor, lr: float, target: torch.Tensor | None = None) -> None:
        """Change all of the tensor; with a target, leave the old memory to its readers and go on in the target."""
        self.steps += 1
        self._change(self.weights, gradient, self.slots, lr, self.weights if target is None else target)
        if target is not None:
            self.weights = target

    def apply_rows(self, rows: torch.Tensor, gradient: torch.Tensor, lr: float) -> None:
        """Change some rows; a row that comes twice counts with the sum of its gradients."""
        self.steps += 1
        rows, places = torch.unique(rows, return_inverse=True)
        summed = torch.zeros((len(rows), *self.weights.shape[1:])).index_add_(0, places, gradient)
        weights, slots = self.weights[rows], [slot[rows] for slot in self.slots]
        self._change(weights, summed, slots, lr, weights)
        self.weights[rows] = weights
        for slot, changed in zip(self.slots, slots, strict=True):
            slot[rows] = changed

    def _change(
        self, weights: torch.Tensor, gradient: torch.Tensor, slots: list[torch.Tensor], lr: float, out: torch.Tensor
    ) -> None:
        rule = self.rule
        if rule.weight_decay and rule.decoupled:
            weights = torch.mul(weights, 1 - lr * rule.weight_decay, out=out)
        elif rule.weight_decay:
            gradient = gradient.add(weights, alpha=rule.weight_decay)
        if rule.kind == "adam":
            mean, square = slots
            mean.lerp_(gradient, 1 - rule.betas[0])
            square.mul_(rule.betas[1]).addcmul_(gradient, gradient, value=1 - rule.betas[1])
            size = lr / (1 - rule.betas[0] ** self.steps)
            root = (square.sqrt() / (1 - rule.betas[1] ** self.steps) ** 0.5).add_(rule.eps)
            torch.addcdiv(weights, mean, root, value=-size, out=out)
            return
        if rule.momentum:
            velocity = slots[0]
            velocity.mul_(rule.momentum).add_(gradient)
            gradient = gradient.add(velocity, alpha=rule.momentum) if rule.nesterov else velocity
        torch.sub(weights, gradient, alpha=lr, out=out)
