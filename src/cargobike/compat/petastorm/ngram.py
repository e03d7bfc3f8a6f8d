"""Windows of rows that follow each other in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cargobike.compat.petastorm.errors import UnsortedRowsError
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField, match_unischema_fields
from cargobike.core.errors import InvalidInputError


class NGram:
    """Windows of rows, each row with fields of its own.

    Rows are windows only within one row group, where they must be sorted by time.

    Args:
        fields: For each step of a window, a whole number, the fields or regular expressions of the row at it; a step
            between them that has none is an empty row.
        delta_threshold: How far the times of neighbours may be apart; a window with a larger gap is left out.
        timestamp_field: The field that says when, or a regular expression of its name.
        timestamp_overlap: Whether windows may share rows.

    Raises:
        InvalidInputError: If something given cannot be used; all mistakes at once.
    """

    def __init__(
        self,
        fields: Any,
        delta_threshold: Any,
        timestamp_field: Any,
        timestamp_overlap: bool = True,
    ) -> None:
        mistakes = []
        if not isinstance(fields, Mapping) or not fields:
            mistakes.append("Fields must be set and must be a dict from steps to lists of fields.")
        elif not all(type(step) is int for step in fields):
            mistakes.append("The keys of fields must be whole numbers: the steps of a window.")
        elif not all(isinstance(each, list | tuple) and not hasattr(each, "_fields") for each in fields.values()):
            mistakes.append("Each step needs a list of fields.")
        if not isinstance(timestamp_field, str | tuple):
            mistakes.append("timestamp_field must be a UnischemaField or a regular expression.")
        if mistakes:
            raise InvalidInputError("This NGram cannot be formed.", mistakes)
        self._fields: dict[int, list[Any]] = {step: list(given) for step, given in fields.items()}
        self._delta_threshold = delta_threshold
        self._timestamp_field: Any = timestamp_field
        self.timestamp_overlap = timestamp_overlap

    @property
    def length(self) -> int:
        """How many rows a window has."""
        return max(self._fields) - min(self._fields) + 1

    @property
    def fields(self) -> dict[int, list[Any]]:
        """The fields of each step."""
        return self._fields

    @property
    def delta_threshold(self) -> Any:
        """How far the times of neighbours may be apart."""
        return self._delta_threshold

    def resolve_regex_field_names(self, schema: Unischema) -> None:
        """Replace regular expressions by the fields of a schema that they match."""
        self._fields = {step: _resolved(given, schema) for step, given in self._fields.items()}
        if isinstance(self._timestamp_field, str):
            found = match_unischema_fields(schema, [self._timestamp_field])
            if len(found) != 1:
                raise InvalidInputError(
                    f"timestamp_field={self._timestamp_field!r} must match one field; it matches "
                    f"{[field.name for field in found]}."
                )
            self._timestamp_field = found[0]

    def get_field_names_at_timestep(self, timestep: int) -> list[str]:
        """Return the names of the fields at a step; none if there is no such step."""
        return [field.name for field in self._fields.get(timestep, [])]

    def get_field_names_at_all_timesteps(self) -> list[str]:
        """Return the names of all fields, and of the time."""
        names = [field.name for given in self._fields.values() for field in given]
        return list(dict.fromkeys([*names, self._timestamp_field.name]))

    def get_schema_at_timestep(self, schema: Unischema, timestep: int) -> Unischema:
        """Return the schema of the row at a step."""
        names = self.get_field_names_at_timestep(timestep)
        return Unischema(f"{schema._name}_view", [schema.fields[name] for name in names if name in schema.fields])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NGram):
            return NotImplemented
        mine, others = self._fields, other._fields
        return set(mine) == set(others) and all(set(mine[step]) == set(others[step]) for step in mine)

    __hash__ = None  # type: ignore[assignment]  # regular expressions are replaced by fields

    def form_windows(self, rows: Sequence[Mapping[str, Any]], schema: Unischema) -> list[dict[int, Any]]:
        """Return the windows of some rows: from each step to its row, as a namedtuple."""
        times = [row[self._timestamp_field.name] for row in rows]
        for at in range(1, len(times)):
            if times[at] < times[at - 1]:
                raise UnsortedRowsError(
                    "NGram assumes that rows are sorted by time within a row group, and "
                    f"{self._timestamp_field.name!r} is {times[at]} after {times[at - 1]}. Sort before writing."
                )
        first = min(self._fields)
        views = [self.get_schema_at_timestep(schema, first + step) for step in range(self.length)]
        windows: list[dict[int, Any]] = []
        last: int | None = None
        for at in range(len(rows) - self.length + 1):
            run = range(at, at + self.length - 1)
            is_close = all(times[place + 1] - times[place] <= self._delta_threshold for place in run)
            if is_close and (self.timestamp_overlap or last is None or times[at] > times[last]):
                windows.append(
                    {
                        first + step: view.make_namedtuple(**{name: rows[at + step][name] for name in view.fields})
                        for step, view in enumerate(views)
                    }
                )
                last = at + self.length - 1
        return windows


def _resolved(given: Sequence[Any], schema: Unischema) -> list[UnischemaField]:
    patterns = [each for each in given if isinstance(each, str)]
    named = [schema.fields[each[0]] for each in given if not isinstance(each, str) and each[0] in schema.fields]
    unknown = [each[0] for each in given if not isinstance(each, str) and each[0] not in schema.fields]
    if unknown:
        raise InvalidInputError(f"The schema has no fields {', '.join(map(repr, unknown))}.")
    return list(dict.fromkeys(named + match_unischema_fields(schema, patterns)))
