from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cargobike.cli.app import main
from cargobike.cli.completing import fitting, join_words
from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.testing.stores import JournalBuilder

FIRST, SECOND = "20270101-000000-aaaa", "20270102-000000-bbbb"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for experiment_id, name in ((FIRST, "digits"), (SECOND, "two words")):
        builder = JournalBuilder(ProjectFolder(tmp_path / "kept"), experiment_id, name=name)
        builder.complete(0.5, lr=0.1)
        builder.end()
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "kept"))
    (tmp_path / "train.py").write_text(
        'def main(lr):\n    """Train once."""\n\ndef _own():\n    pass\n\ndef more():\n    pass\n'
    )
    (tmp_path / "empty.py").touch()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.py").touch()
    (tmp_path / "models" / "b.py").touch()
    (tmp_path / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> object:
    def ask(*words: str) -> list[str]:
        monkeypatch.setenv("_CARGOBIKE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(["cargobike", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.setattr("sys.argv", ["cargobike"])
        with pytest.raises(SystemExit):
            main()
        said = capsys.readouterr()
        assert said.err == ""
        return said.out.split()

    return ask


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("sho",), ["show"]),
        (("show", "20270101"), [FIRST]),
        (("show", "di"), ["digits"]),
        (("rm", FIRST, "2027"), [SECOND, FIRST]),
        (("compare", FIRST, "la"), ["last"]),
        (("ui", "dig"), ["digits"]),
        (("show", "tw"), []),  # a shell would take it for two words
        (("run", ""), ["empty.py:", "kept/", "models/", "train.py:"]),
        (("run", "t"), ["train.py:main", "train.py:more"]),
        (("run", "e"), ["empty.py:"]),
        (("run", "mod"), ["models/a.py:", "models/b.py:"]),
        (("run", "train.py:m"), ["train.py:main", "train.py:more"]),
        (("run", "train.py", ":", "ma"), ["main"]),
        (("run", "train.py", ":"), ["main", "more"]),
        (("run", "missing.py:m"), []),
        (("run", "train.py:main", "--optimizer", "bo"), ["bohb"]),
        (("run", "train.py:main", "--engine", ""), ["local", "spark"]),
        (("ls", "--state", "comp"), ["completed"]),
        (("data", "show", ""), []),
        (("--project", "nowhere", "show", ""), []),
        (("--project", "s3", ":", "//", "show", ""), []),
    ],
)
def test_words_are_completed(words: tuple[str, ...], expected: list[str], complete: object) -> None:
    assert complete(*words) == expected  # type: ignore[operator]


def test_completing_runs_no_file(tmp_path: Path, complete: object) -> None:
    (tmp_path / "train.py").write_text("def main():\n    pass\n\nraise SystemExit('was run')\n")
    assert complete("run", "train.py:") == ["train.py:main"]  # type: ignore[operator]


def test_what_cannot_be_read_completes_to_nothing() -> None:
    def names() -> Iterator[tuple[str, str]]:
        yield "first", ""
        raise StoreError("the index is gone")

    assert fitting(names(), "") == []


@pytest.mark.parametrize(
    ("words", "at", "joined", "place", "prefix"),
    [
        ("cargobike run f.py : tr", 4, "cargobike run f.py:tr", 2, "f.py:"),
        ("cargobike run f.py :", 3, "cargobike run f.py:", 2, "f.py:"),
        ("cargobike run f.py : tr --optimizer b", 6, "cargobike run f.py:tr --optimizer b", 4, ""),
        ("cargobike show x", 2, "cargobike show x", 2, ""),
    ],
)
def test_what_bash_took_apart_is_put_together(words: str, at: int, joined: str, place: int, prefix: str) -> None:
    variables = {"COMP_WORDS": words.replace(" ", "\n"), "COMP_CWORD": str(at)}
    assert join_words(variables) == prefix
    assert variables == {"COMP_WORDS": joined.replace(" ", "\n"), "COMP_CWORD": str(place)}
