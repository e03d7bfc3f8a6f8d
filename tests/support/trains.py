"""Train functions that live in a module of their own, as in a project with several files."""

from __future__ import annotations

from typing import Any

from cargobike import trial


def parabola(x: float) -> float:
    return -((x - 3) ** 2)


class Trainer:
    def __init__(self, offset: float) -> None:
        self.offset = offset

    def train(self, x: float) -> float:
        return x + self.offset

    def __call__(self, x: float) -> float:
        return 10 * x + self.offset

    @staticmethod
    def static(x: float) -> float:
        return 2 * x

    @classmethod
    def of_class(cls, x: float) -> float:
        return 3 * x


def scaled(x: float, factor: float, table: list[float]) -> float:
    return x * factor + sum(table)


def with_reporter(x: float, reporter: Any) -> float:
    for step in range(3):
        reporter.broadcast(x * step, step)
    return 2 * x


def using_every_door(x: float) -> float:
    from cargobike import devices, project, tensorboard

    start = trial.checkpoint.load(0)
    for step in range(start, 3):
        trial.report(score=x * step, step=step)
        trial.checkpoint.save(step + 1)
    (trial.logdir / "note.txt").write_text("seen")
    assert tensorboard.logdir() == str(trial.logdir)
    assert (trial.rank, trial.local_rank, trial.world_size, trial.is_distributed) == (0, 0, 1, False)
    assert not trial.should_stop
    assert devices.get_num_gpus() >= 0
    assert project.path("data").endswith("data")
    return x * float(trial.checkpoint.load())
