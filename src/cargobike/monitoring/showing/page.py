"""The report: one page about one judgement, in one file that needs nothing else."""

from __future__ import annotations

from cargobike.core.values.times import on_calendar
from cargobike.monitoring.judging.measuring import WORDS
from cargobike.monitoring.records import Judged
from cargobike.monitoring.showing.notebook import STYLE, columns, shifts
from cargobike.monitoring.showing.text import chance, headline
from cargobike.ui.markup import fact_list, security_policy, text

LOOK = """
:root{color-scheme:light dark}body{margin:0;background:#fff;color:#1c2330}
main{max-width:1080px;margin:0 auto;padding:24px}
@media (prefers-color-scheme:dark){body{background:#12161d;color:#e6e9ef}}
h1{font-size:1.5em}h1.bad{color:var(--bad)}h1.good{color:var(--good)}h2{margin-top:2em;font-size:1.15em}
dl{display:grid;grid-template-columns:max-content auto;gap:4px 18px}dt{opacity:.7}dd{margin:0}
details{margin:.8em 0}summary{cursor:pointer}
"""


def page_of(judgement: Judged, *, reference: str, now: str, at_s: float) -> str:
    """Return a judgement as a page of HTML.

    Args:
        judgement: What was judged.
        reference: What the reference is called, for people.
        now: What the window is called.
        at_s: When it was judged.
    """
    kind = "bad" if judgement.alarm else "good"
    facts = {
        "reference": f"{reference}, {judgement.reference_rows:,} rows",
        "now": f"{now}, {judgement.rows:,} rows",
        "chance": chance(judgement.probability),
        "alarm": f"at {judgement.false_alarms:.1%} or less, in all columns and statistics together",
        "judged": f"{on_calendar(at_s):%Y-%m-%d %H:%M} UTC",
    }
    if judgement.ignored:
        facts["not judged"] = ", ".join(judgement.ignored)
    title = f"{now} against {reference}"
    return "".join(
        [
            "<!doctype html>\n<html lang=en><head><meta charset=utf-8>",
            security_policy([]),
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(title)}</title><style>{STYLE}{LOOK}</style></head><body><main class=drift>",
            f'<h1 class="{kind}">{text(headline(judgement))}</h1>{shifts(judgement)}{fact_list(facts)}',
            f"<h2>Columns</h2>{columns(judgement, most=len(judgement.columns))}",
            f"<h2>All figures</h2>{_figures(judgement)}</main></body></html>\n",
        ]
    )


def _figures(judgement: Judged) -> str:
    """Return every figure, a table that can be opened for each statistic."""
    parts = []
    for name, subjects in judgement.statistics.items():
        ordered = sorted(subjects.items(), key=lambda item: (item[1].probability, -item[1].value))
        rows = "".join(
            f'<tr><td>{text(subject)}</td><td class="n">{figure.value:.5g}</td>'
            f'<td class="n">{figure.probability:.2%}</td></tr>'
            for subject, figure in ordered
        )
        heads = '<tr><th></th><th class="n">value</th><th class="n">chance</th></tr>'
        parts.append(
            f"<details><summary>{text(WORDS[name])}</summary><div class=scroll><table><thead>{heads}</thead>"
            f"<tbody>{rows}</tbody></table></div></details>"
        )
    return "".join(parts)
