"""Slide 10: name, description and `versioned_resources=[hdfs.project_path() + '…ipynb']`."""

from __future__ import annotations

from cargobike import experiment as ours
from cargobike.compat.hops import experiment, hdfs
from cargobike.results import compare
from support.slide_functions import train

ARGS = {"learning_rate": [0.001], "dropout": [0.5]}


def launch() -> str:
    path: str = experiment.launch(
        train,
        ARGS,
        name="mnist",
        description="a demo of experiments",
        versioned_resources=[hdfs.project_path() + "Jupyter/mnist.ipynb"],
    )
    return path


def test_what_ran_is_kept_compared_and_repeated() -> None:
    hdfs.dump("first", "Jupyter/mnist.ipynb")
    launch()
    first = ours.load("last")
    hdfs.dump("second", "/Jupyter/mnist.ipynb")
    launch()
    second = ours.load("last")
    assert (first.name, first.asked.description) == ("mnist", "a demo of experiments")
    assert first.snapshot is not None
    kept = first.snapshot.resources[0]
    assert kept.name == "mnist.ipynb"
    assert (first.folder / "code" / "resources" / kept.sha256).read_text() == "first"
    assert "mnist.ipynb" in str(compare(first, second))
    assert ours.reproduce(first, quiet=True).is_same
