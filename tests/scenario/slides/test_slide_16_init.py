"""Slide 16: `hvd.init()`: a process learns its place from whatever has started it, without a compiler."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cargobike.compat.hops import experiment
from cargobike.core import settings
from support.scripts import environment
from support.slide_functions import horovod_place

ALONE = "import cargobike.compat.horovod.torch as hvd; hvd.init(); print(hvd.rank(), hvd.size(), hvd.local_rank())"


def test_alone_it_is_the_only_rank() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1", "0"]


def test_inside_a_gang_it_is_one_of_its_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "2")
    returned = experiment.allreduce(horovod_place)
    assert [(one["rank"], one["size"]) for one in returned.result.values] == [(0, 2), (1, 2)]
