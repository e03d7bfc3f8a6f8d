from __future__ import annotations

import pytest
from typer.testing import CliRunner, Result

from cargobike.cli.app import app
from cargobike.core.layout import ProjectFolder
from cargobike.core.version import __version__
from cargobike.testing.stores import JournalBuilder


def call(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def test_the_version_can_be_asked_for_as_an_option() -> None:
    assert call("--version").stdout == call("version").stdout
    assert call("--version").stdout.startswith(f"cargobike {__version__} (Python 3.")


@pytest.mark.parametrize(
    ("wrong", "meant"), [("lss", "ls"), ("shwo", "show"), ("reusme", "resume"), ("tensor", "tensorboard")]
)
def test_a_command_that_there_is_not_names_the_nearest(wrong: str, meant: str) -> None:
    said = call(wrong, code=2).stderr
    assert f"There is no command {wrong!r}. Did you mean {meant!r}?" in said


def test_a_command_like_no_other_points_to_the_list() -> None:
    assert "There is no command 'qqqqq'. `cargobike --help` lists them all." in call("qqqqq", code=2).stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ls", "--state", "foo"), "'foo' is not one of 'running', 'completed'"),
        (("run", "x.py:f", "--direction", "up"), "'up' is not one of 'max', 'min'"),
        (("ls", "--sort", "size"), "'size' is not one of 'started', 'name'"),
    ],
)
def test_choices_are_refused_in_one_plain_sentence(words: tuple[str, ...], expected: str) -> None:
    said = call(*words, code=2).stderr
    assert expected in said
    assert "Value error" not in said


def test_a_name_that_two_experiments_share_means_the_newest_and_says_so(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    project = ProjectFolder(tmp_path_factory.mktemp("twice"))
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(project.root))
    for experiment_id in ("20270101-000000-aaaa", "20270102-000000-bbbb"):
        builder = JournalBuilder(project, experiment_id, name="train")
        builder.complete(0.5, lr=0.1)
        builder.end()
    assert "20270102-000000-bbbb" in call("show", "train").stdout
    assert "2 experiments are named 'train'; this is the newest, 20270102-000000-bbbb." in caplog.text
