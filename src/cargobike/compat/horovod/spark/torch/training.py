"""Trains a network of torch on a rank's share of the rows."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import cargobike.compat.horovod.torch as hvd
from cargobike.compat.horovod.spark.common.training import Plan, array_of, rows_of, save_network


@dataclass(frozen=True)
class TorchPlan(Plan):
    """What a network of torch needs besides."""

    model: Any = None
    optimizer_class: Any = None
    optimizer_state: Any = None
    losses: Sequence[Any] = ()
    loss_constructors: Sequence[Any] = ()
    input_shapes: Sequence[Sequence[int]] | None = None
    label_shapes: Sequence[Sequence[int]] | None = None


def train_function(plan: TorchPlan) -> Callable[..., float]:
    """Return what each rank is to do."""

    def train(data: Any) -> float:
        return _Training(plan, data).run()

    return train


def inputs_of(frame: Any, columns: Sequence[str], shapes: Sequence[Sequence[int]] | None) -> list[Any]:
    """Return columns as tensors of the shapes that a network takes."""
    tensors = [torch.as_tensor(array_of(frame[column])).float() for column in columns]
    return tensors if shapes is None else [t.reshape(tuple(shape)) for t, shape in zip(tensors, shapes, strict=True)]


class _Training:
    """One rank's part."""

    def __init__(self, plan: TorchPlan, data: Any) -> None:
        self.plan = plan
        if plan.random_seed is not None:
            torch.manual_seed(plan.random_seed)
        hvd.init()
        train, val = rows_of(plan, data)
        self.train, self.val = self._tensors(train), self._tensors(val) if len(val) else None
        self.losses = list(plan.losses) or [construct() for construct in plan.loss_constructors]
        self.model = plan.model
        self.optimizer = self._optimizer()

    def run(self) -> float:
        """Train, save what rank 0 has, and return the last loss."""
        plan = self.plan
        steps = plan.train_steps or self._agreed(len(self.train[1][0]), plan.batch_size)
        val_rows = len(self.val[1][0]) if self.val is not None else 0
        val_steps = plan.validation_steps or -(-val_rows // plan.val_batch_size)
        validates = bool(hvd.allreduce(torch.tensor([val_rows]), op=hvd.Sum))
        history = []
        for epoch in range(plan.epochs):
            entry: dict[str, Any] = {"epoch": epoch, "train": self._epoch(steps, is_training=True)}
            if validates:
                entry["validation"] = self._epoch(val_steps if val_rows else 0, is_training=False)
            history.append(entry)
        if hvd.rank() == 0:
            save_network(self._checkpoint(), history)
        hvd.shutdown()
        last = history[-1].get("validation", history[-1]["train"]) if history else {"loss": 0.0}
        return float(last["loss"])

    def _tensors(self, frame: Any) -> tuple[list[Any], list[Any], Any]:
        plan = self.plan
        weights = None
        if plan.sample_weight_col:
            weights = torch.as_tensor(array_of(frame[plan.sample_weight_col])).float()
        labels = inputs_of(frame, plan.label_cols, plan.label_shapes)
        return inputs_of(frame, plan.feature_cols, plan.input_shapes), labels, weights

    def _optimizer(self) -> Any:
        plan, model = self.plan, self.model
        plain = plan.optimizer_class(model.parameters(), lr=1)
        plain.load_state_dict(plan.optimizer_state)
        if plan.earlier is not None:
            state = torch.load(io.BytesIO(plan.earlier), weights_only=True)
            model.load_state_dict(state["model"])
            plain.load_state_dict(state["optimizer"])
        for group in plain.param_groups:  # as Horovod's: that of one rank was given
            group["lr"] *= hvd.size()
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(plain, root_rank=0)
        more = {} if plan.compression is None else {"compression": plan.compression}
        named = model.named_parameters()
        return hvd.DistributedOptimizer(plain, named, backward_passes_per_step=plan.passes, **more)

    def _agreed(self, rows: int, batch_size: int) -> int:
        """Return how many steps every rank has rows for."""
        own = torch.tensor([-(-rows // batch_size)])
        return int(hvd.allreduce(own, op=hvd.Min))

    def _epoch(self, steps: int, *, is_training: bool) -> dict[str, Any]:
        inputs, labels, weights = self.train if is_training or self.val is None else self.val
        size = self.plan.batch_size if is_training else self.plan.val_batch_size
        rows = len(labels[0])
        order = torch.randperm(rows) if is_training and self.plan.shuffle else torch.arange(rows)
        self.model.train(is_training)
        total, sums = 0.0, [0.0] * len(self._metrics())
        for step in range(steps):
            start, end = step * size, (step + 1) * size
            chosen = order[start:end] if start < rows else order[torch.arange(start, end) % rows]
            batch = [tensor[chosen] for tensor in inputs]
            wanted = [tensor[chosen] for tensor in labels]
            weight = None if weights is None else weights[chosen]
            with torch.set_grad_enabled(is_training):
                outputs, wanted = self._alike(self.model(*batch), wanted)
                loss = self._loss(outputs, wanted, weight)
            if is_training:
                self._descend(loss, is_last=step + 1 == steps, step=step)
            total += float(loss)
            for number, (metric, index) in enumerate(self._metrics()):
                sums[number] += float(metric(outputs[index], wanted[index]))
        *totals, count = hvd.allreduce(torch.tensor([total, *sums, steps], dtype=torch.float64), op=hvd.Sum).tolist()
        means = [each / count for each in totals]
        named = {
            f"{self.plan.label_cols[index]}_{getattr(metric, '__name__', type(metric).__name__)}": value
            for (metric, index), value in zip(self._metrics(), means[1:], strict=True)
        }
        return {"loss": means[0], "all_metrics": named}

    def _descend(self, loss: Any, *, is_last: bool, step: int) -> None:
        """Go back through the network; weights change after some passes, and with the last ones of an epoch."""
        (loss / self.plan.passes).backward()
        if (step + 1) % self.plan.passes == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
        elif is_last:
            self.optimizer.synchronize()
            with self.optimizer.skip_synchronize():
                self.optimizer.step()
            self.optimizer.zero_grad()

    def _metrics(self) -> list[tuple[Any, int]]:
        """Return each metric with the number of the output that it is for."""
        pairs = []
        for number, group in enumerate(self.plan.metrics):
            members = group if isinstance(group, list | tuple) else [group]
            pairs += [(metric, number if isinstance(group, list | tuple) else 0) for metric in members]
        return pairs

    def _alike(self, outputs: Any, labels: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return outputs as a list, and labels in their shapes if they have as many elements."""
        listed = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        if self.plan.label_shapes is None:
            labels = [
                label.reshape(output.shape) if output.numel() == label.numel() else label
                for output, label in zip(listed, labels, strict=True)
            ]
        return listed, labels

    def _loss(self, outputs: list[Any], labels: list[Any], weight: Any) -> Any:
        count = len(labels)
        factors = self.plan.loss_weights or [1.0 / count] * count
        losses = self.losses * count if len(self.losses) == 1 else self.losses
        total: Any = 0.0
        for loss, output, label, factor in zip(losses, outputs, labels, factors, strict=True):
            if weight is None:
                total = total + factor * loss(output, label)
            else:
                each = loss(output, label, reduction="none")
                total = total + factor * (each.reshape(len(weight), -1).mean(dim=1) * weight).mean()
        return total

    def _checkpoint(self) -> bytes:
        state = self.optimizer.state_dict()
        for group in state["param_groups"]:
            group["lr"] /= hvd.size()
        buffer = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimizer": state}, buffer)
        return buffer.getvalue()
