"""What is shown of an exception of a train function, also of one that raises when it is looked at."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.experiments.trial.failure import describe_exception, is_symptom


def caught(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def _refuse(*_: Any) -> NoReturn:
    raise RuntimeError("do not look")


class NoText(Exception):
    __str__ = _refuse


class NoRepr(Exception):
    __repr__ = _refuse


class TextIsNumber(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # noqa: PLE0307 - as some do


class TextLeaves(Exception):
    def __str__(self) -> str:  # noqa: PLE0307 - it never returns
        sys.exit(3)


class NoAttributes(Exception):
    __getattribute__ = _refuse


class NamelessKind(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__name__", "__qualname__", "__module__"):
            raise RuntimeError(name)
        return super().__getattribute__(name)


class Nameless(Exception, metaclass=NamelessKind):
    pass


class NotPicklable(Exception):
    __reduce__ = __reduce_ex__ = _refuse


class Own(BaseException):
    pass


class NoFile(FileNotFoundError):
    @property
    def filename(self) -> str:
        raise RuntimeError("do not look")


def _raise(error: BaseException) -> NoReturn:
    raise error


def _of_a_module_that_is_gone() -> NoReturn:
    module = types.ModuleType("gone")
    exec("class Gone(Exception): pass", module.__dict__)
    raise module.Gone("away")


def _in_a_circle() -> NoReturn:
    first, second = ValueError("first"), KeyError("second")
    first.__context__, second.__context__ = second, first
    raise first from second


def _leave(code: Any) -> Callable[[], None]:
    return lambda: sys.exit(code)


class NoReprAtAll:
    __repr__ = __str__ = _refuse


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (lambda: _raise(NoText("x")), "NoText: "),
        (lambda: _raise(NoRepr("x")), "NoRepr: x"),
        (lambda: _raise(TextIsNumber("x")), "TextIsNumber: "),
        (lambda: _raise(TextLeaves("x")), "TextLeaves: "),
        (lambda: _raise(NoAttributes("hidden")), "NoAttributes: hidden"),
        (lambda: _raise(Nameless("none")), "Nameless: none"),
        (lambda: _raise(NotPicklable("lock")), "NotPicklable: lock"),
        (lambda: _raise(Own("own")), "Own: own"),
        (lambda: _raise(NoFile("where")), "NoFile: where"),
        (lambda: _raise(FileNotFoundError(2, "gone", b"\xff\0")), "FileNotFoundError: "),
        (lambda: _raise(KeyboardInterrupt()), "KeyboardInterrupt"),
        (lambda: _raise(GeneratorExit("g")), "GeneratorExit: g"),
        (lambda: _raise(RecursionError("deep")), "RecursionError: deep"),
        (lambda: _raise(ExceptionGroup("two", [ValueError("one"), NoText()])), "ValueError: one"),
        (_of_a_module_that_is_gone, "gone.Gone: away"),
        (_in_a_circle, "ValueError: first"),
        (_leave("text"), "SystemExit: text"),
        (_leave(3), "sys.exit(3)"),
        (_leave(NoReprAtAll()), "SystemExit: "),
    ],
)
def test_class_and_traceback_are_shown_whatever_an_exception_does(function: Callable[[], Any], shown: str) -> None:
    error = caught(function)
    text, alike = describe_exception(error, "/tmp")
    assert shown in text
    assert "Traceback (most recent call last)" in text
    assert f'File "{__file__}"' in text
    assert "@" in alike
    assert not is_symptom(error)


def test_text_that_cannot_be_encoded_is_made_visible() -> None:
    text, _ = describe_exception(caught(lambda: _raise(OSError(os.fsdecode(b"no file \xff")))), "/tmp")
    assert "no file \\udcff" in text
    text.encode()


def test_a_circle_of_causes_is_searched_once_for_a_lost_peer() -> None:
    first, second = ValueError("first"), RuntimeError("[gloo/transport/tcp] Connection closed by peer")
    first.__context__, second.__context__ = second, first
    assert is_symptom(first)
    assert not is_symptom(ConnectionError("Connection reset by peer"))


def test_a_file_that_is_where_the_experiment_was_launched_is_hinted_at(tmp_path: Path) -> None:
    (tmp_path / "data.csv").touch()
    missing = caught(lambda: _raise(FileNotFoundError(2, "no", "data.csv")))
    assert "Hint: 'data.csv' exists in" in describe_exception(missing, str(tmp_path))[0]
    assert "Hint" not in describe_exception(missing, str(tmp_path / "elsewhere"))[0]


def test_a_message_of_ours_ends_where_the_user_called_us() -> None:
    text, _ = describe_exception(caught(lambda: _raise(InvalidInputError("say it otherwise"))), "/tmp")
    assert "say it otherwise" in text
