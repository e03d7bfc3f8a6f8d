"""The frameworks whose ranks can meet. All are offered: nothing tells beforehand which one a function will use."""

from __future__ import annotations

from typing import Final

from cargobike.experiments.trial.meeting.jax import Jax
from cargobike.experiments.trial.meeting.tensorflow import Tensorflow
from cargobike.experiments.trial.meeting.torch import Torch
from cargobike.experiments.trial.meeting.way import Way

WAYS: Final[tuple[type[Way], ...]] = (Torch, Tensorflow, Jax)
