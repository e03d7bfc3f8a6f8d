"""A train function may live anywhere: module, script, closure, method, object, partial, another file."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cargobike import Searchspace, experiment
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.asking.function import find_train
from support.scripts import run_script
from support.trains import Trainer, parabola, scaled, using_every_door, with_reporter


def values(train: Callable[..., Any] | str, xs: list[float]) -> list[float | None]:
    return [trial.value for trial in experiment.launch(train, {"x": xs}, quiet=True).trials]


def test_a_function_of_a_module() -> None:
    result = experiment.launch(parabola, Searchspace(x=("INTEGER", [0, 5])), num_trials=4, quiet=True)
    assert [trial.value for trial in result.trials] == [parabola(trial.params["x"]) for trial in result.trials]
    assert result.best is not None
    assert result.best.metric == max(trial.value or 0.0 for trial in result.trials)
    assert experiment.load(result.id) == result


def test_a_closure_a_lambda_and_a_nested_function() -> None:
    offset = 0.5

    def closure(x: float) -> float:
        return x + offset

    assert values(closure, [1, 2]) == [1.5, 2.5]
    assert values(lambda x: x * 4, [1, 2]) == [4.0, 8.0]


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        pytest.param(Trainer(1).train, [2.0, 3.0], id="bound method"),
        pytest.param(Trainer(1), [11.0, 21.0], id="callable object"),
        pytest.param(Trainer.static, [2.0, 4.0], id="static method"),
        pytest.param(Trainer.of_class, [3.0, 6.0], id="class method"),
        pytest.param(functools.partial(scaled, factor=2, table=[0.5] * 100_000), [50_002.0, 50_004.0], id="partial"),
        pytest.param(
            functools.partial(functools.partial(scaled, table=[1.0]), factor=3), [4.0, 7.0], id="partial of a partial"
        ),
        pytest.param(functools.partial(Trainer(5).train), [6.0, 7.0], id="partial of a method"),
        pytest.param(functools.partial(Trainer(5)), [15.0, 25.0], id="partial of an object"),
    ],
)
def test_methods_objects_and_partials(train: Callable[..., Any], expected: list[float]) -> None:
    assert values(train, [1, 2]) == expected


def test_a_function_named_by_file_with_a_neighbour_it_imports(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_it.py").write_text("FACTOR = 7\n")
    (tmp_path / "elsewhere.py").write_text(
        "from neighbour_of_it import FACTOR\n"
        "def helper(x):\n    return x * FACTOR\n"
        "def train(x):\n    return helper(x)\n"
    )
    assert values(f"{tmp_path}/elsewhere.py:train", [1, 2]) == [7.0, 14.0]


def test_a_file_that_is_named_often_is_looked_beside_once(tmp_path: Path) -> None:
    (tmp_path / "often.py").write_text("def train(x):\n    return x\n")
    for _ in range(3):
        assert find_train(f"{tmp_path}/often.py:train").function(x=2) == 2
    assert sys.path.count(str(tmp_path)) == 1


def test_a_word_that_is_also_the_name_of_an_unusual_module(tmp_path: Path) -> None:
    """`torch.classes` cannot be pickled, and is no part of a function that asks something else for its `.classes`."""
    assert run_script(
        tmp_path / "work",
        """
        import json, types
        import torch
        from cargobike import experiment

        def train(x):
            data = types.SimpleNamespace(classes=["cat", "dog"], ops=3)
            return float(torch.tensor(x)) + len(data.classes) + data.ops

        if __name__ == "__main__":
            result = experiment.launch(train, {"x": [1.0, 2.0]}, quiet=True)
            print(json.dumps([t.value for t in result.trials]))
        """,
    ) == [6.0, 7.0]


def test_a_reporter_can_be_asked_for() -> None:
    result = experiment.launch(with_reporter, {"x": [1.0, 2.0]}, quiet=True)
    assert [trial.value for trial in result.trials] == [2.0, 4.0]
    assert [list(trial.curve) for trial in result.trials] == [
        [(0, 0.0), (1, 1.0), (2, 2.0)],
        [(0, 0.0), (1, 2.0), (2, 4.0)],
    ]


def test_every_door_works_inside_and_outside_an_experiment() -> None:
    assert using_every_door(2.0) == 6.0
    result = experiment.launch(using_every_door, {"x": [2.0]}, quiet=True)
    assert result.trials[0].value == 6.0
    assert (ExperimentFolder(result.folder).trial(0).logs / "note.txt").read_text() == "seen"
    assert list(result.trials[0].curve) == [(0, 0.0), (1, 2.0), (2, 4.0)]


def test_a_reporter_outside_an_experiment_needs_none_of_ours() -> None:
    seen = []

    class Mine:
        def broadcast(self, metric: float, step: int) -> None:
            seen.append((metric, step))

    assert with_reporter(1.0, Mine()) == 2.0
    assert seen == [(0.0, 0), (1.0, 1), (2.0, 2)]


def test_everything_that_a_script_may_define(tmp_path: Path) -> None:
    assert run_script(
        tmp_path / "work",
        """
        import dataclasses, functools, json
        from cargobike import experiment, trial

        CONSTANT = 3

        @dataclasses.dataclass
        class Settings:
            offset: float = 1.0

        def helper(x):
            return x * CONSTANT

        def train(x):
            return helper(x)

        def decorated(function):
            @functools.wraps(function)
            def inner(*args, **kwargs):
                return function(*args, **kwargs) + 100
            return inner

        @decorated
        def wrapped(x):
            return x

        class Model:
            settings = Settings()
            def fit(self, x):
                return x + self.settings.offset

        if __name__ == "__main__":
            found = []
            for function in (train, wrapped, Model().fit, lambda x: helper(x) + 1, functools.partial(max, 2)):
                if isinstance(function, functools.partial):
                    function = functools.partial(lambda y, x: y + x, 2)
                result = experiment.launch(function, {"x": [1, 2]}, quiet=True)
                found.append([t.value for t in result.trials])
            print(json.dumps(found))
        """,
    ) == [[3, 6], [101, 102], [2, 3], [4, 7], [3, 4]]


def test_a_script_without_a_main_guard_does_not_run_itself_again(tmp_path: Path) -> None:
    assert run_script(
        tmp_path / "work",
        """
            import json
            from cargobike import experiment

            with open("runs.txt", "a") as file:
                file.write("run\\n")

            def train(x):
                return x

            result = experiment.launch(train, {"x": [1, 2]}, quiet=True)
            print(json.dumps([open("runs.txt").read(), result.best.metric]))
            """,
    ) == ["run\n", 2]


def test_a_users_module_wins_over_an_installed_one_of_the_same_name(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "sklearn.py").write_text("ANSWER = 42\n")
    assert (
        run_script(
            work,
            """
            import json
            from cargobike import experiment

            def train(x):
                import sklearn
                return sklearn.ANSWER + x

            print(json.dumps(experiment.launch(train, {"x": [0, 1]}, quiet=True).best.metric))
            """,
        )
        == 43
    )


def test_a_module_run_with_m_keeps_its_relative_imports(tmp_path: Path) -> None:
    package = tmp_path / "work" / "carried"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "numbers_here.py").write_text("TEN = 10\n")
    (package / "job.py").write_text(
        "from cargobike import experiment\n"
        "from .numbers_here import TEN\n"
        "def train(x):\n"
        "    from . import numbers_here\n"
        "    return x * TEN + numbers_here.TEN\n"
        "if __name__ == '__main__':\n"
        "    print(experiment.launch(train, {'x': [1]}, quiet=True).best.metric)\n"
    )
    assert (
        run_script(
            tmp_path / "work",
            "import runpy; runpy.run_module('carried.job', run_name='__main__', alter_sys=True)",
        )
        == 20.0
    )


def test_a_function_may_carry_much_data() -> None:
    data = bytes(30 << 20)

    def train(x: int) -> float:
        return len(data) + x

    assert values(train, [1, 2]) == [float(len(data) + 1), float(len(data) + 2)]


def test_parameters_may_be_long_but_not_without_end() -> None:
    def train(words: list[int]) -> float:
        return len(words)

    result = experiment.launch(train, [{"words": list(range(10_000))}, {"words": [1]}], quiet=True)
    assert [trial.value for trial in result.trials] == [10_000.0, 1.0]
    with pytest.raises(InvalidInputError, match="too large"):
        experiment.launch(train, params={"words": list(range(1_000_000))}, quiet=True)


def test_a_file_may_have_the_name_of_a_library(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("def train(x):\n    return x\n")
    assert values(f"{tmp_path}/random.py:train", [1]) == [1.0]
    import random

    assert random.Random(1).random() > 0


def test_a_script_may_pickle_objects_of_its_own_classes(tmp_path: Path) -> None:
    assert run_script(
        tmp_path / "work",
        """
            import functools, json, multiprocessing, pickle
            from cargobike import experiment, trial

            class Model:
                def __init__(self, weight):
                    self.weight = weight

            class Trainer:
                def fit(self, x):
                    return pickle.loads(pickle.dumps([Model(x), self]))[0].weight

            def double(model):
                return Model(2 * model.weight)

            def train(x, offset):
                model = pickle.loads(pickle.dumps(Model(x)))
                trial.checkpoint.save(model)
                with multiprocessing.get_context("fork").Pool(1) as pool:
                    [doubled] = pool.map(double, [trial.checkpoint.load()])
                return doubled.weight + offset

            def value(function):
                return experiment.launch(function, params={"x": 1}, quiet=True).value

            print(json.dumps([value(functools.partial(train, offset=10)), value(Trainer().fit)]))
            """,
    ) == [12, 1]


def test_a_module_that_reads_the_command_line_when_imported(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "options_of_it.py").write_text(
        "import argparse\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--factor', type=int, default=3)\n"
        "options = parser.parse_args()\n"
        "def train(x):\n"
        "    return x * options.factor\n"
    )
    assert (
        run_script(
            tmp_path / "work",
            """
            import sys
            sys.argv[1:] = ["--factor", "5"]
            from cargobike import experiment
            from options_of_it import train

            print(experiment.launch(train, params={"x": 2}, quiet=True).value)
            """,
        )
        == 10
    )


def test_a_module_that_launches_when_imported_is_refused_in_a_worker(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "circular_job.py").write_text(
        "from cargobike import experiment\n"
        "def train(x):\n"
        "    return x\n"
        "experiment.launch(train, params={'x': 1}, quiet=True)\n"
    )
    text = run_script(
        tmp_path / "work",
        """
        import json
        try:
            import circular_job
        except Exception as error:
            print(json.dumps(str(error)))
        """,
    )
    assert "launches an experiment itself" in text
    assert 'if __name__ == "__main__"' in text


def test_a_train_function_inherits_nothing_that_it_should_not_have() -> None:
    def train() -> None:
        import os

        held = [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3, 100) if os.path.exists(f"/proc/self/fd/{fd}")]
        connections = [name for name in held if name.startswith("socket:")]
        # Beside the connection to its agent only the memory that it writes its stack to if it is asked where it stands,
        # and the working directory, which is locked so that it stays.
        assert len(connections) == 1, held
        assert {name for name in held if name not in connections} == {"/memfd:cargobike-stack (deleted)", os.getcwd()}
        with open("/proc/self/oom_score_adj") as file:
            assert file.read().strip() == "500"

    experiment.launch(train, params={}, quiet=True)


def test_a_function_from_a_file_can_pickle_what_is_in_that_file(tmp_path: Path) -> None:
    (tmp_path / "pickling_job.py").write_text(
        "import pickle\n"
        "class Net:\n    pass\n"
        "def add(left, right):\n    return left + right\n"
        "def unused():\n    return 3\n"
        "def train():\n"
        "    assert isinstance(pickle.loads(pickle.dumps(Net())), Net)\n"
        "    import pickling_job\n"
        "    return pickle.loads(pickle.dumps(add))(1, pickling_job.unused())\n"
    )
    assert experiment.launch(f"{tmp_path / 'pickling_job.py'}:train", params={}, quiet=True).value == 4.0
