"""What a replica does with a batch: look up features, `before`, the model, `after`; and what was wrong with a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import cloudpickle
import msgspec

from cargobike.core.errors import InvalidInputError, PredictionError
from cargobike.core.registering.looking_up import Lookup
from cargobike.core.registering.modelling import Predictor
from cargobike.core.signatures import Signature
from cargobike.serving.checking import is_finite, mistakes_in, row_type, shown

Step = Callable[[list[Any]], Sequence[Any]]

MOST_ALONE: Final = 4096
"""How many rows of a failed batch are tried again at most, to find those at fault."""


@dataclass(frozen=True, slots=True)
class Functions:
    """What stands before and after a model: each takes a list and returns as many."""

    before: Step | None = None
    after: Step | None = None


NO_FUNCTIONS: Final = Functions()
"""Nothing before the model, and nothing after it."""


def pack_functions(before: Step | None, after: Step | None) -> bytes:
    """Return functions as they are kept in a specification; nothing if there are none."""
    if before is None and after is None:
        return b""
    packed: bytes = cloudpickle.dumps((before, after))
    return packed


def unpack_functions(packed: bytes) -> Functions:
    """Return the functions of a specification, which came from the project's own journal."""
    return Functions(*cloudpickle.loads(packed)) if packed else NO_FUNCTIONS


class Pipeline:
    """Answers batches of rows: every answer belongs to the row at its place.

    Args:
        predictor: The model.
        signature: What the model takes and returns; `None` if that is not known.
        functions: What stands before and after it.
        lookup: Where features come from, if requests hold keys only.
    """

    def __init__(
        self,
        predictor: Predictor,
        *,
        signature: Signature | None = None,
        functions: Functions = NO_FUNCTIONS,
        lookup: Lookup | None = None,
    ) -> None:
        self._predictor = predictor
        self._functions = functions
        self._lookup = lookup
        self._signature = signature
        outputs = signature.outputs if signature is not None and functions.after is None else ()
        self._outputs = outputs
        self._answers_type = list[row_type(outputs)] if outputs else None  # type: ignore[misc]
        rows_are_made = functions.before is not None or lookup is not None
        self._rows_type = None
        if signature is not None and signature.inputs and rows_are_made:
            self._rows_type = list[row_type(signature.inputs)]  # type: ignore[misc]

    @property
    def outer_signature(self) -> Signature | None:
        """What callers send and get; `None` where a function or a look-up stands between them and the model."""
        signature = self._signature
        if signature is None or self._functions.before is not None or self._lookup is not None:
            return None
        return Signature(signature.inputs, self._outputs)

    @property
    def keys(self) -> tuple[str, ...]:
        """What rows must have so that features can be looked up."""
        lookup = self._lookup
        return () if lookup is None else (*lookup.keys, *lookup.request_fields)

    @property
    def has_before(self) -> bool:
        """Whether a function makes the model's rows from what callers send."""
        return self._functions.before is not None

    @property
    def streams(self) -> bool:
        """Whether it can answer a row piece by piece."""
        return hasattr(self._predictor, "stream")

    def answer(self, rows: list[Any]) -> list[Any]:
        """Return one plain answer for each row.

        Raises:
            InvalidInputError: If what the model was to get does not fit its signature.
            PredictionError: If there are more or fewer answers than rows, or they do not fit the signature.
        """
        count = len(rows)
        rows = self._prepared(rows)
        answers = _as_many(self._predictor(rows), count, "The model")
        if self._functions.after is not None:
            answers = _as_many(self._functions.after(answers), count, "The function after the model")
        plain: list[Any] = msgspec.to_builtins(answers, builtin_types=(bytes,), enc_hook=_plain)
        self._check_answers(plain)
        return plain

    def stream(self, row: Any) -> Iterator[Any]:
        """Yield the answer to one row piece by piece; a model that cannot do that gives one piece."""
        if not self.streams:
            yield self.answer([row])[0]
            return
        [prepared] = self._prepared([row])
        for piece in self._predictor.stream(prepared):  # type: ignore[attr-defined]
            yield msgspec.to_builtins(piece, builtin_types=(bytes,), enc_hook=_plain)

    def close(self) -> None:
        """Close the look-up."""
        if self._lookup is not None:
            self._lookup.close()

    def _prepared(self, rows: list[Any]) -> list[Any]:
        count = len(rows)
        if self._lookup is not None:
            rows = self._with_features(rows)
        if self._functions.before is not None:
            rows = _as_many(self._functions.before(rows), count, "The function before the model")
        if self._rows_type is not None and self._signature is not None:
            try:
                msgspec.convert(rows, self._rows_type)
            except msgspec.ValidationError as error:
                found = mistakes_in(rows, self._signature.inputs)
                raise InvalidInputError("What the model would get does not fit it:", found or [str(error)]) from None
        return rows

    def _with_features(self, rows: list[Any]) -> list[Any]:
        assert self._lookup is not None
        for number, row in enumerate(rows):
            if not isinstance(row, Mapping) or any(key not in row for key in self.keys):
                raise InvalidInputError(f"row {number} is {shown(row)}; it needs {', '.join(self.keys)}")
        found = self._lookup.rows(rows)
        if self._signature is not None and len(self._signature.inputs) == 1:
            return [_bare(features, self._signature.inputs[0].name) for features in found]
        if self._signature is not None and self._signature.inputs and self._functions.before is None:
            # A view may have more features than a model takes: those that others are computed from, for example.
            taken = [field.name for field in self._signature.inputs]
            return [{name: features[name] for name in taken if name in features} for features in found]
        return list(found)

    def _check_answers(self, answers: list[Any]) -> None:
        if self._answers_type is None:
            return
        try:
            msgspec.convert(answers, self._answers_type)
        except msgspec.ValidationError as error:
            found = mistakes_in(answers, self._outputs, "answer")
            raise PredictionError(_sentence("Answers do not fit the signature", found or [str(error)])) from None
        if not is_finite(answers):
            found = mistakes_in(answers, self._outputs, "answer")
            raise PredictionError(_sentence("Answers cannot be sent", found))


def _bare(features: dict[str, Any], name: str) -> Any:
    """Return a row for a model of one field: that feature, or all of them as a vector."""
    return features[name] if name in features else list(features.values())


def _as_many(results: Any, count: int, maker: str) -> list[Any]:
    if hasattr(results, "tolist"):
        results = results.tolist()
    if isinstance(results, (str, bytes, Mapping)) or not isinstance(results, Sequence):
        raise PredictionError(f"{maker} returned {type(results).__name__}; it is to return a list of {count} answers.")
    if len(results) != count:
        raise PredictionError(f"{maker} returned {len(results)} answers for {count} rows.")
    return results if isinstance(results, list) else list(results)


def _plain(value: Any) -> Any:
    """Return what NumPy, torch and their like call a number or an array as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "item"):
        return value.item()
    raise PredictionError(f"An answer holds {type(value).__name__}, which cannot be sent: return numbers, text, lists.")


def _sentence(summary: str, mistakes: Sequence[str]) -> str:
    return f"{summary}: {'; '.join(mistakes)}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a batch that failed at first.

    Attributes:
        answers: One for each row, `None` for those at fault.
        at_fault: Their places.
        error: What the first of them raised; `None` if each row alone was answered.
    """

    answers: list[Any]
    at_fault: list[int]
    error: Exception | None


def find_fault(answer: Callable[[list[Any]], list[Any]], rows: list[Any], error: Exception) -> Verdict:
    """Answer what can be answered of a batch that raised an error, and name the rows that cannot.

    Halves are tried until the rows at fault stand alone: one bad row among 64 costs 12 calls.
    """
    answers: list[Any] = [None] * len(rows)
    at_fault: list[int] = []
    reason: Exception | None = None
    if len(rows) == 1 or len(rows) > MOST_ALONE:
        return Verdict(answers, list(range(len(rows))), error)
    halves = [(0, len(rows) // 2), (len(rows) // 2, len(rows))]
    while halves:
        start, stop = halves.pop(0)
        try:
            answers[start:stop] = answer(rows[start:stop])
        except Exception as problem:  # noqa: BLE001 - user code may raise anything
            if stop - start == 1:
                at_fault.append(start)
                reason = reason or problem
                continue
            middle = (start + stop) // 2
            halves = [(start, middle), (middle, stop), *halves]
    return Verdict(answers, at_fault, reason)
