"""Reading source although another thread reads some at the same time."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from cargobike.core.source_code import parse_expression, parse_module


@pytest.mark.parametrize(("disturbances", "is_read"), [(3, True), (10_000, False)])
def test_another_thread_disturbs_for_a_while_at_most(
    monkeypatch: pytest.MonkeyPatch, disturbances: int, is_read: bool
) -> None:
    # When the interpreter switches threads in the middle is nothing that a test can choose: the error is imitated.
    left = [disturbances]
    parse = ast.parse

    def disturbed(*args: Any, **kwargs: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch (before=33, after=28)")
        return parse(*args, **kwargs)

    monkeypatch.setattr(ast, "parse", disturbed)
    if is_read:
        assert ast.unparse(parse_module("x = 1")) == "x = 1"
    else:
        with pytest.raises(SystemError, match="depth mismatch"):
            parse_module("x = 1")


def test_what_is_no_python_is_refused() -> None:
    assert ast.unparse(parse_expression("a < b")) == "a < b"
    with pytest.raises(SyntaxError):
        parse_module("def")
    with pytest.raises(SyntaxError):
        parse_expression("a = b")
