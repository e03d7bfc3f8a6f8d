"""Operators that run code of the user as it is: a function, a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cargobike_provider.operators.operator import CargobikeOperator, Function, read_function


class CargobikeFunctionOperator(CargobikeOperator):
    """Call a function with the project in use, such as one that writes tables or feature groups.

    What it returns must be plain data, or things of the project, of which references are handed on.

    Args:
        function: `"file.py:function"`, relative to the DAG's folder, or `"package.module:function"`; or a function that
            can be imported.
        op_args: Its arguments, as plain data.
        op_kwargs: Its arguments by name, as plain data.
        open_things: Whether references among them (`{"kind": "model", "id": "digits:3"}`) are opened, so that the
            function gets the model version, table, experiment … itself.
    """

    template_fields: Sequence[str] = (*CargobikeOperator.template_fields, "function", "op_args", "op_kwargs")

    def __init__(
        self,
        *,
        function: Function,
        op_args: Sequence[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        open_things: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.open_things = open_things
        self.function = read_function("function", function)
        self.op_args = op_args
        self.op_kwargs = op_kwargs

    def request(self) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for."""
        return "function", {
            "function": self.function,
            "args": list(self.op_args or ()),
            "kwargs": dict(self.op_kwargs or {}),
            "open_things": self.open_things,
        }


class CargobikeNotebookOperator(CargobikeOperator):
    """Run a notebook with parameters, and keep it as it was run, also if a cell fails.

    Parameters are set in a cell behind the one that is tagged `parameters`, or at the beginning. The project is in use
    in the notebook, too. The Python that has Cargobike needs `nbclient` and `ipykernel`.

    Args:
        input_nb: The notebook.
        output_nb: Where it is kept as it was run; by default `notebooks/DAG/RUN/TASK/` in the project.
        parameters: Variables by name, as plain data.
        kernel_name: The kernel; by default `python3`, that of the same Python.
        cell_timeout_s: How long a cell may take.
    """

    template_fields: Sequence[str] = (*CargobikeOperator.template_fields, "input_nb", "output_nb", "parameters")

    def __init__(
        self,
        *,
        input_nb: str,
        output_nb: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        kernel_name: str | None = None,
        cell_timeout_s: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.input_nb = input_nb
        self.output_nb = output_nb
        self.parameters = parameters
        self.kernel_name = kernel_name
        self.cell_timeout_s = cell_timeout_s

    def request(self) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for."""
        return "notebook", {
            "input_nb": self.input_nb,
            "output_nb": self.output_nb,
            "parameters": dict(self.parameters or {}),
            "kernel_name": self.kernel_name,
            "cell_timeout_s": self.cell_timeout_s,
        }
