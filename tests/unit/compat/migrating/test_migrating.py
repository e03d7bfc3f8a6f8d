"""Scripts are rewritten in our own names, and what is not is listed and still runs."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.compat.hops import names as hops_names
from cargobike.compat.horovod import names as horovod_names
from cargobike.compat.migrating.script import migrate
from cargobike.compat.translations import Translation

HOPS = (
    Translation(
        "hops.experiment.grid_search",
        "cargobike.experiment.launch",
        positional=("train_fn", "grid_dict", "direction", "local_logdir"),
        renamed={"grid_dict": "space", "optimization_key": "metric"},
        dropped=frozenset({"local_logdir"}),
        same=True,
    ),
    Translation("hops.devices.get_num_gpus", "cargobike.devices.get_num_gpus", same=True),
    Translation("hops.experiment.Direction.MAX", "", literal='"max"'),
    Translation(
        "hops.experiment.mirrored",
        "cargobike.experiment.allreduce",
        positional=("train_fn", "name", "evaluator"),
        renamed={"train_fn": "train"},
        accepts=frozenset({"train_fn", "name"}),
        same=True,
        returns=False,
        remark="it returns a result",
    ),
    Translation("hops.hdfs.chmod", "", remark="storages of ours have no modes"),
    Translation("hops.hdfs.load", "cargobike.storage.read", remark="open the storage first"),
)
HOROVOD = (
    Translation("horovod.torch.rank", "cargobike.trial.rank", remark="no call: trial.rank"),
    Translation("horovod.torch.prepare", "cargobike.torch.prepare", same=True),
)


@pytest.fixture(autouse=True, scope="module")
def _known() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hops_names, "TRANSLATIONS", HOPS)
        patch.setattr(horovod_names, "TRANSLATIONS", HOROVOD)
        yield


def rewritten(code: str) -> str:
    new = migrate(textwrap.dedent(code)).code
    ast.parse(new)
    return new


def test_a_call_gets_our_name_and_our_arguments() -> None:
    new = rewritten("""\
        from hops import experiment
        path = experiment.grid_search(train, {"lr": [1, 2]}, optimization_key="acc", local_logdir=True)
    """)
    assert new == textwrap.dedent("""\
        from cargobike import experiment
        path = experiment.launch(train, space={"lr": [1, 2]}, metric="acc")
    """)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(f, (g), 'max', True)", "(f, space=(g), direction='max')"),
        ("(f, local_logdir=True, grid_dict=g)", "(f, space=g)"),
        ("(local_logdir=True)", "()"),
        ("(f, (a, b)[0], 'ü', local_logdir=h(1, 2),)", "(f, space=(a, b)[0], direction='ü')"),
        ("(f,\n  g,  # the grid\n  'max')", "(f,\n  space=g,  # the grid\n  direction='max')"),
        ("(f, {k: v for k, v in g})", "(f, space={k: v for k, v in g})"),
        ("()", "()"),
    ],
)
def test_arguments_by_position_are_named_and_what_means_nothing_goes(old: str, new: str) -> None:
    assert rewritten(f"from hops import experiment\nexperiment.grid_search{old}\n") == (
        f"from cargobike import experiment\nexperiment.launch{new}\n"
    )


def test_lists_of_arguments_are_left_as_they_are() -> None:
    code = "from hops import experiment\nexperiment.grid_search(*given)\nexperiment.grid_search(f, **more)\n"
    migrated = migrate(code)
    assert migrated.code == code.replace("from hops", "from cargobike.compat.hops")
    assert [change.remark for change in migrated.left] == [
        "its arguments are not written one by one, or have no counterpart"
    ] * 2


def test_a_value_is_written_in_place_of_its_name() -> None:
    assert rewritten("from hops import experiment\nexperiment.grid_search(f, g, experiment.Direction.MAX)\n") == (
        'from cargobike import experiment\nexperiment.launch(f, space=g, direction="max")\n'
    )
    assert rewritten("from hops.experiment import Direction\nf(Direction.MAX)\n") == 'pass\nf("max")\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("experiment.mirrored(f, name='n')", "cargobike.experiment.allreduce(f, name='n')"),
        ("experiment.mirrored(f, 'n')", "cargobike.experiment.allreduce(f, name='n')"),
        ("path = experiment.mirrored(f)", "path = experiment.mirrored(f)"),
        ("print(experiment.mirrored(f))", "print(experiment.mirrored(f))"),
        ("experiment.mirrored(f, evaluator=True)", "experiment.mirrored(f, evaluator=True)"),
        ("experiment.mirrored(f, 'n', True)", "experiment.mirrored(f, 'n', True)"),
        ("experiment.mirrored(*all)", "experiment.mirrored(*all)"),
    ],
)
def test_a_call_is_rewritten_only_where_results_and_arguments_have_counterparts(old: str, new: str) -> None:
    code = f"from hops import experiment\nexperiment.begin()\n{old}\n"
    assert rewritten(code).splitlines()[-1] == new
    assert [change.remark for change in migrate(code).left][1:] in ([], ["it returns a result"])


def test_what_is_not_translated_runs_on_under_its_old_name() -> None:
    migrated = migrate(
        "import numpy as np\nfrom hops import devices, hdfs, os\nhdfs.chmod('a', 700)\ndevices.get_num_gpus()\n"
    )
    assert migrated.code == (
        "import numpy as np\nfrom cargobike import devices\nfrom cargobike.compat.hops import hdfs, os\n"
        "hdfs.chmod('a', 700)\ndevices.get_num_gpus()\n"
    )
    (left,) = migrated.left
    assert (left.line, left.old, left.new, left.remark) == (3, "hops.hdfs.chmod", "", "storages of ours have no modes")


def test_a_word_that_the_script_uses_otherwise_stays_its_own() -> None:
    assert rewritten("import torch\nimport horovod.torch as hvd\nhvd.prepare(torch.nn.Linear(1, 1))\n") == (
        "import torch\nimport cargobike\ncargobike.torch.prepare(torch.nn.Linear(1, 1))\n"
    )


def test_old_and_new_names_of_one_word_stand_side_by_side() -> None:
    new = rewritten("from hops import experiment\nexperiment.grid_search(f, g)\nexperiment.begin()\n")
    assert new == (
        "import cargobike\nfrom cargobike.compat.hops import experiment\n"
        "cargobike.experiment.launch(f, space=g)\nexperiment.begin()\n"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import hops\nhops.hdfs.load(1)", "from cargobike.compat import hops\nhops.hdfs.load(1)"),
        ("import hops as h\nh.hdfs.load(1)", "import cargobike.compat.hops as h\nh.hdfs.load(1)"),
        (
            "import horovod.torch\nhorovod.torch.rank()",
            "import cargobike.compat.horovod.torch\nfrom cargobike.compat import horovod\nhorovod.torch.rank()",
        ),
        ("import horovod.torch as hvd\nhvd.rank()", "import cargobike.compat.horovod.torch as hvd\nhvd.rank()"),
        ("from hops.hdfs import load\nload(1)", "from cargobike.compat.hops.hdfs import load\nload(1)"),
        (
            "from cargobike.compat.hops import hdfs\nhdfs.load(1)",
            "from cargobike.compat.hops import hdfs\nhdfs.load(1)",
        ),
        ("import os, hops\nhops.x(os)", "from cargobike.compat import hops\nimport os\nhops.x(os)"),
        ("from hops import *\nload(1)", "from hops import *\nload(1)"),
        ("from .hops import load\nload(1)", "from .hops import load\nload(1)"),
    ],
)
def test_every_form_of_import_is_kept(old: str, new: str) -> None:
    assert rewritten(old) == new


def test_imports_inside_functions_stay_there() -> None:
    new = rewritten("""\
        def train(lr):
            from hops import devices
            return devices.get_num_gpus() * lr
        def other(devices):
            return devices.get_num_gpus()
    """)
    assert new == textwrap.dedent("""\
        def train(lr):
            import cargobike
            return cargobike.devices.get_num_gpus() * lr
        def other(devices):
            return devices.get_num_gpus()
    """)


def test_a_name_is_also_found_where_it_is_not_called() -> None:
    new = rewritten(
        "from hops import devices\ncount = devices.get_num_gpus\nrun(x=[devices.get_num_gpus() for _ in y])\n"
    )
    assert new == (
        "from cargobike import devices\ncount = devices.get_num_gpus\nrun(x=[devices.get_num_gpus() for _ in y])\n"
    )


def test_a_script_without_older_names_stays_as_it_is() -> None:
    code = "import json\n\n\ndef f(hops):\n    return hops.experiment.grid_search(1)\n"
    assert migrate(code).code == code
    assert migrate(code).changes == ()


@given(
    st.lists(
        st.sampled_from(
            [
                "x = experiment.grid_search(f, devices.get_num_gpus(), experiment.Direction.MAX)",
                "experiment.grid_search(f, local_logdir=experiment.grid_search(a), grid_dict=devices.get_num_gpus())",
                "hdfs.chmod('ü', mode=hdfs.load('b'))",
                "if devices.get_num_gpus() > 1: experiment.launch(devices.get_num_gpus)",
                "experiment = 3",
                "def f(hdfs):\n    from hops import devices as d\n    return d.get_num_gpus() + hdfs.load(1)",
                "class A:\n    n = devices.get_num_gpus()  # 'quoted",
                "text = '''experiment.grid_search(\n1)'''",
            ]
        ),
        max_size=8,
    )
)
def test_whatever_the_script_the_rewritten_one_is_python_and_needs_no_older_library(lines: list[str]) -> None:
    new = migrate("\n".join(["from hops import devices, experiment, hdfs", *lines]) + "\n").code
    for node in ast.walk(ast.parse(new)):
        if isinstance(node, ast.ImportFrom):
            assert str(node.module).startswith("cargobike")
    assert migrate(new).code == new, "and there is nothing left to rewrite"
