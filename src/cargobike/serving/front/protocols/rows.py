"""Rows of one version in JSON: decoded by types made once from its signature, mistakes named one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cargobike.core.signatures import Field, Signature
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.serving.checking import mistakes_in, row_type, shown
from cargobike.serving.front.desk.problems import Problem, Refused
from cargobike.serving.wire import Ready

_BLANKS: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a body asks for.

    Attributes:
        rows: The rows, checked.
        reply: Makes the body of the answer from the answers and the version that gave them.
    """

    rows: list[Any]
    reply: Callable[[list[Any], int], bytes]


class RowCodec:
    """Reads rows of one version.

    Args:
        signature: What callers send and get; `None` if any JSON may be a row.
        keys: What rows must have where features are looked up.
        example: A few rows to try it with.
        streams: Whether answers can come piece by piece.
    """

    def __init__(
        self,
        signature: Signature | None = None,
        *,
        keys: Sequence[str] = (),
        example: Sequence[Any] = (),
        streams: bool = False,
    ) -> None:
        self.signature = signature
        self.keys = tuple(keys)
        self.example = list(example)
        self.streams = streams
        self.inputs: tuple[Field, ...] = signature.inputs if signature is not None else ()
        self.outputs: tuple[Field, ...] = signature.outputs if signature is not None else ()
        self.row: Any = row_type(self.inputs) if self.inputs else Any
        self._row_decoder: Any = msgspec.json.Decoder(self.row)
        self._rows_decoder: Any = msgspec.json.Decoder(list[self.row])  # type: ignore[name-defined]
        instances = msgspec.defstruct("Instances", [("instances", list[self.row])])  # type: ignore[name-defined]
        self._instances_decoder: Any = msgspec.json.Decoder(instances)
        self._depth = len(self.inputs[0].shape) if len(self.inputs) == 1 else 0

    def is_for(self, signature: Signature | None, ready: Ready) -> bool:
        """Tell whether it already is what a replica asks for."""
        mine = (self.signature, self.keys, self.example, self.streams)
        return mine == (signature, tuple(ready.keys), ready.example, ready.streams)

    def read_rows(self, body: bytes) -> tuple[list[Any], bool]:
        """Return the rows of a body that is a row or a list of rows, and whether it was a single one."""
        is_single = self._is_single(body)
        try:
            rows = [self._row_decoder.decode(body)] if is_single else self._rows_decoder.decode(body)
        except UNDECODABLE as error:
            raise self._refused(body, error, lambda plain: [plain] if is_single else plain) from None
        return self._checked(rows), is_single

    def read_instances(self, body: bytes) -> list[Any]:
        """Return the rows of `{"instances": [...]}`."""
        try:
            rows = self._instances_decoder.decode(body).instances
        except UNDECODABLE as error:
            raise self._refused(body, error, _instances_of) from None
        return self._checked(rows)

    def convert(self, rows: list[Any]) -> list[Any]:
        """Return plain values as rows, if they fit."""
        if self.inputs:
            try:
                rows = msgspec.convert(rows, list[self.row])  # type: ignore[name-defined]
            except msgspec.ValidationError as error:
                raise self._wrong_rows(rows, error) from None
        return self._checked(rows)

    def plain(self, rows: Sequence[Any]) -> list[Any]:
        """Return rows as plain values, as keys need them."""
        if len(self.inputs) > 1:
            plain: list[Any] = msgspec.to_builtins(rows)
            return plain
        return list(rows)

    def _is_single(self, body: bytes) -> bool:
        """Tell a row from a list of rows by how many brackets it begins with."""
        start = body[:64].lstrip(_BLANKS)
        if not start.startswith(b"["):
            return True
        if not self._depth:
            return False
        depth = 0
        for byte in start:
            if byte == 0x5B:
                depth += 1
            elif byte not in _BLANKS:
                break
        return depth <= self._depth

    def _checked(self, rows: list[Any]) -> list[Any]:
        if not rows:
            raise Refused(Problem(422, "no-rows", "No rows were sent; at least one is needed."))
        for number, row in enumerate(rows) if self.keys else ():
            missing = [key for key in self.keys if not isinstance(row, dict) or key not in row]
            if missing:
                wrong = f"row {number} is {shown(row)}; it needs {', '.join(map(repr, missing))}"
                raise Refused(Problem(422, "wrong-row", wrong, mistakes=(wrong,)))
        return rows

    def _refused(self, body: bytes, error: Exception, rows_of: Callable[[Any], Any]) -> Refused:
        try:
            plain = msgspec.json.decode(body)
        except UNDECODABLE as problem:
            return Refused(Problem(400, "not-json", f"The body is not JSON: {problem}."))
        rows = rows_of(plain)
        if not isinstance(rows, list):
            return Refused(Problem(422, "wrong-body", f"{shown(plain)} was sent; a row or a list of rows is needed."))
        return self._wrong_rows(rows, error)

    def _wrong_rows(self, rows: list[Any], error: Exception) -> Refused:
        mistakes = tuple(mistakes_in(rows, self.inputs)) or (str(error),)
        return Refused(Problem(422, "wrong-row", "; ".join(mistakes), mistakes=mistakes))


def _instances_of(plain: Any) -> Any:
    if not isinstance(plain, dict) or not isinstance(plain.get("instances"), list):
        raise Refused(
            Problem(422, "wrong-body", f'{shown(plain)} was sent; {{"instances": [row, …]}} is needed.')
        ) from None
    return plain["instances"]
