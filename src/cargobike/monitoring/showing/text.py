"""Judgements as text: for terminals, logs and the interpreter."""

from __future__ import annotations

from typing import Final

from cargobike.core.values.words import count, number
from cargobike.monitoring.records import Comparison, Judged, Shift

MOST_SHOWN: Final = 10

_SENTENCES: Final = {
    "mean": "the mean moved by {size} spreads",
    "ks": "the distribution functions differ by {size}",
    "wasserstein": "values moved by {size} spreads on average",
    "psi": "population stability index {size}",
    "js": "Jensen-Shannon divergence {size} bits",
    "missing": "the share of missing values differs by {size}",
    "unseen": "{size} of the values were never seen before",
    "correlation": "the correlation differs by {size}",
}


def headline(judgement: Judged) -> str:
    """Return the judgement in a sentence."""
    rows = count(judgement.rows, "row")
    if not judgement.alarm:
        return f"No alarm: {rows} look like the reference ({chance(judgement.probability)})."
    if judgement.features and judgement.features[0].is_certain:
        moved = count(len(judgement.features), "shift")
        return f"ALARM: {moved} in {rows} ({chance(judgement.probability)})."
    return f"ALARM: all columns together moved in {rows} ({chance(judgement.probability)})."


def chance(probability: float) -> str:
    """Return how often chance alone does this, for people."""
    share = f"{probability:.2%}" if probability < 0.01 else f"{probability:.0%}"
    return f"{share} of windows without a shift are as unusual"


def sentence(shift: Shift) -> str:
    """Return what moved, in a few words."""
    words = _SENTENCES[shift.statistic].format(size=number(float(f"{shift.size:.3g}")))
    return words if shift.is_certain else f"{words} (contributes most, no alarm by itself)"


def before_and_after(comparison: Comparison) -> str:
    """Return a column in the reference and now, in a few words."""
    then, now = comparison.reference, comparison.now
    parts = []
    if then.mean is not None and now.mean is not None:
        parts.append(f"mean {_short(then.mean)} → {_short(now.mean)}")
    if then.missing or now.missing:
        parts.append(f"missing {then.missing:.1%} → {now.missing:.1%}")
    if comparison.unseen:
        names = sorted(comparison.unseen, key=lambda name: (-comparison.unseen[name], name))
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        parts.append(f"never seen before: {', '.join(names[:3])}{more}")
    if now.infinite:
        parts.append(f"{now.infinite} infinite")
    return ", ".join(parts)


def as_text(judgement: Judged) -> str:
    """Return a judgement as lines for people."""
    columns = {comparison.name: comparison for comparison in judgement.columns}
    lines = [headline(judgement)]
    for shift in judgement.features[:MOST_SHOWN]:
        line = f"  {shift.feature}: {sentence(shift)}"
        if shift.feature in columns and (more := before_and_after(columns[shift.feature])):
            line += f"; {more}"
        lines.append(line)
    if len(judgement.features) > MOST_SHOWN:
        lines.append(f"  … and {len(judgement.features) - MOST_SHOWN} more")
    return "\n".join(lines)


def _short(value: float) -> str:
    return f"{value:.4g}"
