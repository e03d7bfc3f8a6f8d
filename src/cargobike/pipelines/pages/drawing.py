"""A run as figures: the graph of its steps with their states, and when each ran. SVG that needs no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cargobike.pipelines.facts import StepState
from cargobike.pipelines.record import RunRecord, StepRecord
from cargobike.pipelines.things import needs_of
from cargobike.ui.markup import text

MOST_NODES: Final = 150
"""A run with more steps is drawn by their names: one box for all steps of a name."""
MOST_BARS: Final = 150
_BOX: Final = (176, 38)
_GAP: Final = (46, 16)
_EDGE: Final = 8
_BAR: Final = 22
_LABEL: Final = 210
_WIDTH: Final = 1000
_WORST: Final = ("failed", "interrupted", "running", "waiting", "skipped", "refused", "completed", "cached")


class _Node(NamedTuple):
    key: int
    label: str
    note: str
    state: str
    address: str


def graph(record: RunRecord) -> str:
    """Draw which step needed which, from left to right; empty if there are no steps."""
    needs = needs_of(record)
    if len(record.steps) <= MOST_NODES:
        nodes = [_node(record, record.steps[number]) for number in sorted(record.steps)]
    else:
        nodes, needs = _by_name(record, needs)
    if not nodes:
        return ""
    places = _places(nodes, needs)
    width = max(x for x, _ in places.values()) + _BOX[0] + _EDGE
    height = max(y for _, y in places.values()) + _BOX[1] + _EDGE
    lines = [_line(places[one], places[node.key]) for node in nodes for one in needs.get(node.key, ()) if one in places]
    boxes = [_box(node, *places[node.key]) for node in nodes]
    return (
        f'<svg class="graph" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="group" '
        f'aria-label="Graph of {len(nodes)} steps">{"".join(lines)}{"".join(boxes)}</svg>'
    )


def gantt(record: RunRecord, now: float) -> str:
    """Draw when each of the first steps ran; empty if none has begun."""
    steps = [record.steps[number] for number in sorted(record.steps) if record.steps[number].started_at is not None]
    steps = steps[:MOST_BARS]
    if not steps:
        return ""
    begin = record.started.at
    end = max([record.ended_at or 0.0, *(_ended_at(step, now) for step in steps)])
    span = max(end - begin, 1e-3)
    scale = (_WIDTH - _LABEL - _EDGE) / span
    rows = [_bar(record, step, row, scale=scale, now=now) for row, step in enumerate(steps)]
    height = len(steps) * _BAR + 26
    ticks = [_tick(part, span, height) for part in range(5)]
    label = f"When each step ran: {len(steps)} steps in {span:.3g} seconds"
    return (
        f'<svg class="gantt" viewBox="0 0 {_WIDTH} {height}" role="group" aria-label="{text(label)}">'
        f"{''.join(ticks)}{''.join(rows)}</svg>"
    )


def _node(record: RunRecord, step: StepRecord) -> _Node:
    note = f"{step.seconds:.3g} s" if step.state is StepState.COMPLETED else step.state.value
    address = f"/pipelines/runs/{record.id}/steps/{step.number}"
    return _Node(step.number, f"{step.number} {step.name}", note, step.state.value, address)


def _by_name(record: RunRecord, needs: Mapping[int, Sequence[int]]) -> tuple[list[_Node], dict[int, tuple[int, ...]]]:
    """Return one box for all steps of a name, and which names needed which."""
    first: dict[str, int] = {}
    counts: dict[str, dict[str, int]] = {}
    together: dict[int, set[int]] = {}
    for number in sorted(record.steps):
        step = record.steps[number]
        key = first.setdefault(step.name, number)
        states = counts.setdefault(step.name, {})
        states[step.state.value] = states.get(step.state.value, 0) + 1
        needed = {first[record.steps[one].name] for one in needs[number]}
        together.setdefault(key, set()).update(one for one in needed if one < key)
    nodes = []
    for name, number in list(first.items())[:MOST_NODES]:
        states = counts[name]
        worst = min(states, key=_WORST.index)
        note = ", ".join(f"{states[state]:,} {state}" for state in _WORST if state in states)
        nodes.append(_Node(number, name, note, worst, f"/pipelines/runs/{record.id}/steps/{number}"))
    return nodes, {key: tuple(sorted(others)) for key, others in together.items()}


def _places(nodes: list[_Node], needs: Mapping[int, Sequence[int]]) -> dict[int, tuple[int, int]]:
    """Return where each box goes: as far right as what it needed is deep, below those that came before."""
    depths: dict[int, int] = {}
    rows: dict[int, int] = {}
    places = {}
    for node in nodes:  # what is needed comes before what needs it
        depth = max((depths[one] + 1 for one in needs.get(node.key, ()) if one in depths), default=0)
        depths[node.key] = depth
        row = rows.get(depth, 0)
        rows[depth] = row + 1
        places[node.key] = (_EDGE + depth * (_BOX[0] + _GAP[0]), _EDGE + row * (_BOX[1] + _GAP[1]))
    return places


def _line(source: tuple[int, int], target: tuple[int, int]) -> str:
    x1, y1, x2, y2 = source[0] + _BOX[0], source[1] + _BOX[1] // 2, target[0], target[1] + _BOX[1] // 2
    bend = max(20, (x2 - x1) // 2)
    return f'<path class="need" d="M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"/>'


def _box(node: _Node, x: int, y: int) -> str:
    name = f"step {node.label}, {node.state}, {node.note}"
    return (
        f'<a href="{text(node.address)}" class="{node.state}" aria-label="{text(name)}"><title>{text(name)}</title>'
        f'<rect x="{x}" y="{y}" width="{_BOX[0]}" height="{_BOX[1]}" rx="8"/>'
        f'<text x="{x + 12}" y="{y + 16}">{text(_cut(node.label, 24))}</text>'
        f'<text class="small" x="{x + 12}" y="{y + 30}">{text(_cut(node.note, 30))}</text></a>'
    )


def _bar(run: RunRecord, step: StepRecord, row: int, *, scale: float, now: float) -> str:
    assert step.started_at is not None
    y = row * _BAR
    start = _LABEL + max(0.0, step.started_at - run.started.at) * scale
    length = max(3.0, (_ended_at(step, now) - step.started_at) * scale)
    name = f"step {step.number} {step.name}, {step.state.value}, {_ended_at(step, now) - step.started_at:.3g} seconds"
    return (
        f'<a href="/pipelines/runs/{text(run.id)}/steps/{step.number}" class="{step.state.value}" '
        f'aria-label="{text(name)}"><title>{text(name)}</title>'
        f'<rect class="ground" x="0" y="{y}" width="{_WIDTH}" height="{_BAR}"/>'
        f'<text x="{_LABEL - 10}" y="{y + 15}" text-anchor="end">{text(_cut(f"{step.number} {step.name}", 28))}</text>'
        f'<rect x="{start:.1f}" y="{y + 4}" width="{length:.1f}" height="{_BAR - 8}" rx="4"/></a>'
    )


def _tick(part: int, span: float, height: int) -> str:
    x = _LABEL + part / 4 * (_WIDTH - _LABEL - _EDGE)
    anchor = "end" if part == 4 else "start" if part == 0 else "middle"
    return (
        f'<line class="axis" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height - 18}"/>'
        f'<text class="small" x="{x:.1f}" y="{height - 4}" text-anchor="{anchor}">{part / 4 * span:.3g} s</text>'
    )


def _ended_at(step: StepRecord, now: float) -> float:
    assert step.started_at is not None
    if step.ended_at is not None:
        return max(step.ended_at, step.started_at)
    return max(now, step.started_at) if step.state is StepState.RUNNING else step.started_at


def _cut(label: str, most: int) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"
