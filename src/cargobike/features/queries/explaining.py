"""Say how a query is answered, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cargobike.core.values.words import count
from cargobike.features.joining.duckdb import Lateness, count_late
from cargobike.features.joining.spine import Spine
from cargobike.features.queries.planning import Lookup, Plan


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was inferred, and what to beware of; its text is for people.

    Attributes:
        lines: One sentence each.
        lateness: For each group that is joined in time, how many rows got a value, and how many of these values were
            written after the row's time, so that a model would not have had them then.
    """

    lines: tuple[str, ...]
    lateness: Mapping[str, Lateness]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return str(self)


def explain(plan: Plan, spine: Spine | None, commits: Mapping[str, int]) -> Explanation:
    """Return how a plan is carried out.

    Args:
        plan: The plan.
        spine: Its rows, to count what was written late; `None` to leave that out.
        commits: At which commit each group is read, as far as it is fixed.
    """
    lines = []
    if plan.rows is not None and (own := list(plan.own.values())):
        lines.append(f"{', '.join(own)}: from the rows of {plan.rows.name}.")
    lines += plan.notes
    lateness = {}
    for lookup in plan.lookups:
        lines.append(_words(lookup, plan))
        if spine is not None and spine.times is not None and plan.now_us is None:
            found = count_late(spine, lookup.side(commits.get(lookup.group.name), plan.known_at))
            lateness[lookup.group.name] = found
            lines.append(_lateness_words(lookup.group.name, found, len(spine), plan))
    if commits:
        lines.append(f"Read at the commits {', '.join(f'{name}@{number}' for name, number in commits.items())}.")
    return Explanation(tuple(lines), lateness)


def _words(lookup: Lookup, plan: Plan) -> str:
    definition = lookup.group.definition
    features = ", ".join(
        feature if name == feature else f"{feature} (as {name})" for name, feature in lookup.columns.items()
    )
    words = f"{features}: looked up in {definition.name} (version {definition.version}) by {' and '.join(lookup.on)}"
    if not definition.event_time:
        return f"{words}; it has no event time, so its one row for a key counts at any time."
    when = "now" if plan.now_us is not None else repr(plan.time)
    words += f", the latest row whose {definition.event_time!r} is at or before {when}"
    if definition.ttl_s is not None:
        words += f" and at most {definition.ttl_s:g} s older"
    if plan.known_at:
        words += f", and which was {'written' if plan.known_at == 'commit' else f'known ({plan.known_at!r})'} by then"
    return words + "."


def _lateness_words(name: str, found: Lateness, rows: int, plan: Plan) -> str:
    words = f"  {found.matched} of {count(rows, 'row')} found a row in {name}"
    if plan.known_at:
        return f"{words}; {found.late} of these were written after the time of the row that they are joined to."
    advice = " Count only what was known by then with known_at='commit'." if found.late else ""
    return f"{words}; {found.late} of these were written after the time of the row that they are joined to.{advice}"
