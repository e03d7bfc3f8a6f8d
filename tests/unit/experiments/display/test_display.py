from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import SimpleNamespace

import msgspec
import pytest
from rich.console import Console

from cargobike.core.facts import (
    AttemptStarted,
    ExperimentEnded,
    ExperimentStarted,
    Fact,
    Reported,
    TrialEnded,
    TrialPaused,
    TrialSuggested,
    WorkerJoined,
)
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Params
from cargobike.experiments.display.display import QuietDisplay, choose_display
from cargobike.experiments.display.drawn import DrawnDisplay
from cargobike.experiments.display.notebook import NotebookDisplay, page
from cargobike.experiments.display.panel import panel
from cargobike.experiments.display.plain import PlainDisplay, plain_line
from cargobike.experiments.display.snapshot import ProgressSnapshot
from cargobike.experiments.display.terminal import TerminalDisplay
from cargobike.experiments.display.text import clean, params, rate
from cargobike.experiments.usage import DataPace
from cargobike.testing.journals import first_fact

HOSTILE = "<script>alert(1)</script>[bold red]\x1b[2J\x07\n\u202e"


def begin(name: str = "digits", num_trials: int | None = 60) -> list[Fact]:
    start = first_fact(
        at=0.0, id="20261115-220145-k3f9", name=name, num_trials=num_trials, metric="accuracy", workers=2
    )
    return [start, WorkerJoined(at=0.5, worker="w0"), WorkerJoined(at=0.5, worker="w1")]


def started(trial: int, at: float = 1.0, params: Params | None = None) -> list[Fact]:
    return [
        TrialSuggested(at=at, trial=trial, params=params or {"lr": 0.00123456789, "act": "relu"}),
        AttemptStarted(at=at, trial=trial, attempt=1, workers=(f"w{trial % 2}",)),
    ]


def busy_search(name: str = "digits", params: Params | None = None, error: str = "ValueError: bad lr") -> list[Fact]:
    """Twelve ended trials (nine completed, two stopped, one failed), one paused, two running, of sixty."""
    facts = begin(name)
    for trial in range(15):
        facts += started(trial, 1.0 + trial, params)
    for trial in range(12):
        state = "failed" if trial == 3 else "stopped" if trial in (5, 7) else "completed"
        facts.append(
            TrialEnded(
                at=2.0 + trial,
                trial=trial,
                state=state,  # type: ignore[arg-type]
                value=trial / 100 if state == "completed" else None,
                error=error if state == "failed" else None,
            )
        )
    facts.append(TrialPaused(at=14.0, trial=12))
    return facts


def snapshot(facts: list[Fact], now_s: float = 14.0) -> ProgressSnapshot:
    display = PlainDisplay(new_record(), io.StringIO())
    tell(display, facts)
    return display._progress.snapshot(now_s)


def new_record() -> ExperimentRecord:
    """Return the record of an experiment that has just begun."""
    return ExperimentRecord(first_fact(at=0.0, id="e", name="n"))


def tell(display: DrawnDisplay, facts: Sequence[Fact]) -> None:
    """Keep the record up to date, then the display, as the driver does."""
    record = display._progress._record
    for fact in facts:
        if isinstance(fact, ExperimentStarted):
            record.header = fact
            record.__post_init__()
        else:
            record.apply(fact)  # type: ignore[arg-type]
    display.update(facts)


def drawn(state: ProgressSnapshot, width: int) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, color_system=None)
    console.print(panel(state, width=width))
    return stream.getvalue().rstrip("\n").split("\n")


class TtyStream(io.StringIO):
    """Text that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class BrokenStream(TtyStream):
    """A terminal that has gone away."""

    def __init__(self, error: Exception, healthy_writes: int = 0) -> None:
        super().__init__()
        self.error = error
        self.healthy_writes = healthy_writes

    def write(self, text: str, /) -> int:
        if self.healthy_writes > 0:
            self.healthy_writes -= 1
            return len(text)
        raise self.error


@pytest.fixture(autouse=True)
def attended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "40")


# The terminal panel


@pytest.mark.parametrize("width", [60, 100])
def test_panel_says_everything(width: int) -> None:
    text = "\n".join(drawn(snapshot(busy_search()), width))
    for expected in (
        "digits · searching",
        "20261115-220145-k3f9",
        "12/60 trials · 20 %",
        "9 completed",
        "2 running",
        "1 paused",
        "2 stopped",
        "accuracy 0.11 (max) in trial 11",
        "lr=0.00123457  act=relu",
        "1.0 trials/s",
        "left",
        "14 s elapsed",
        "2/2 workers busy",
        "trial 3: ValueError: bad lr",
    ):
        assert expected in text


@pytest.mark.parametrize("width", [1, 5, 20, 40, 47, 48, 60, 100, 200])
def test_panel_never_reaches_the_right_edge(width: int) -> None:
    lines = drawn(snapshot(busy_search(params={f"parameter_{n}": "x" * 50 for n in range(40)})), width)
    assert max(len(line) for line in lines) <= max(1, min(width - 3, 100))
    if width >= 40:
        assert len(lines) <= 12


def test_panel_without_total_or_trials() -> None:
    text = "\n".join(drawn(snapshot(begin(num_trials=None), now_s=1.0), 80))
    assert "0 trials" in text
    assert "%" not in text
    assert "0/2 workers busy" in text


def test_panel_shows_the_latest_report_until_a_trial_has_completed() -> None:
    facts = [*begin(), *started(0), Reported(at=3.0, trial=0, step=4, metrics={"loss": 0.25})]
    assert "trial 0, step 4: loss=0.25" in "\n".join(drawn(snapshot(facts), 80))
    facts.append(TrialEnded(at=4.0, trial=0, state="completed", value=0.5))
    assert "step 4" not in "\n".join(drawn(snapshot(facts), 80))


def test_panel_treats_what_users_wrote_as_text() -> None:
    facts = busy_search(name=HOSTILE, params={"[red]p": HOSTILE}, error=HOSTILE)
    text = "\n".join(drawn(snapshot(facts), 100))
    assert "<script>alert(1)</script>[bold red]" in text
    assert "[red]p=<script>" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text


def test_bar_is_as_full_as_the_search() -> None:
    def cells(facts: list[Fact]) -> tuple[int, int]:
        bar = drawn(snapshot(facts), 100)[1]
        return bar.count("━"), bar.count("━") + bar.count("─")

    full, all_cells = cells(busy_search())
    assert full == all_cells * 12 // 60
    everything = begin(num_trials=2)
    for trial in range(2):
        everything += [*started(trial), TrialEnded(at=2.0, trial=trial, state="stopped")]
    full, all_cells = cells(everything)
    assert full == all_cells > 0


# The terminal display


def test_terminal_display_draws_in_place_and_leaves_the_last_state() -> None:
    stream = TtyStream()
    display = TerminalDisplay(new_record(), stream)
    tell(display, busy_search())
    display.refresh(14.0)
    assert stream.getvalue() == ""  # rich is not loaded before trials have been on their way for a moment
    display.refresh(14.2)
    assert "12/60 trials" in stream.getvalue()
    assert stream.getvalue().count("\x1b[?25l") == 1
    tell(display, [ExperimentEnded(at=20.0, state="interrupted", reason="Ctrl-C")])
    display.close(20.0)
    last = stream.getvalue().rpartition("╭")[2]
    assert "interrupted" in last
    assert "Ctrl-C" in last
    assert stream.getvalue().rstrip().endswith("\x1b[?25h")
    before = stream.getvalue()
    display.close(21.0)
    display.refresh(22.0)
    assert stream.getvalue() == before


def test_terminal_display_draws_at_most_eight_times_a_second() -> None:
    stream = TtyStream()
    display = TerminalDisplay(new_record(), stream)
    tell(display, [*begin(num_trials=None), *started(0)])
    for tick in range(2_000):
        tell(display, [Reported(at=1.0, trial=0, step=tick, metrics={"loss": 1.0})])
        display.refresh(2.0 + tick / 1_000)
    frames = stream.getvalue().count("╭")
    assert 10 <= frames <= 17
    for tick in range(1_000):
        display.refresh(4.0 + tick / 1_000)
    assert stream.getvalue().count("╭") - frames <= 2  # no news: only the clock moves
    display.close(5.0)


def test_terminal_display_shows_the_phase_of_a_slow_start() -> None:
    stream = TtyStream()
    display = TerminalDisplay(new_record(), stream)
    tell(display, begin()[:1])
    display.phase("importing torch…")
    display.refresh(0.0)
    assert stream.getvalue() == ""
    display.refresh(0.6)
    assert "importing torch…" in stream.getvalue()
    assert "0/2 workers joined" in stream.getvalue()
    display.close(0.7)


def test_what_is_printed_meanwhile_stays_above_the_panel_and_streams_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = TtyStream()
    piped = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", piped)
    display = TerminalDisplay(new_record(), stream)
    tell(display, busy_search())
    display.refresh(14.0)
    display.refresh(15.0)
    print("a result for the next program")
    print("a [bold]warning", file=sys.stderr)
    display.close(16.0)
    assert piped.getvalue() == "a result for the next program\n"
    assert "a [bold]warning" in stream.getvalue()
    assert sys.stderr is stream
    assert sys.stdout is piped


@pytest.mark.parametrize("error", [BrokenPipeError(32, "gone"), ValueError("I/O on closed file"), OSError(5, "I/O")])
@pytest.mark.parametrize("healthy_writes", [0, 3])
@pytest.mark.parametrize("kind", [TerminalDisplay, PlainDisplay])
def test_a_display_that_cannot_draw_falls_silent(
    kind: Callable[[ExperimentRecord, io.StringIO], DrawnDisplay],
    error: Exception,
    healthy_writes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = BrokenStream(error, healthy_writes)
    monkeypatch.setattr(sys, "stderr", stream)
    display = kind(new_record(), stream)
    tell(display, busy_search())
    for second in range(120):
        display.update([Reported(at=14.0, trial=13, step=second, metrics={})])
        display.refresh(14.0 + second)
    display.phase("stopping")
    display.close(200.0)
    assert sys.stderr is stream
    assert healthy_writes == 0 or stream.healthy_writes == 0


def test_a_closed_stream_does_not_hurt() -> None:
    for kind in (TerminalDisplay, PlainDisplay):
        stream = TtyStream()
        stream.close()
        display = kind(new_record(), stream)
        tell(display, busy_search())
        display.refresh(14.0)
        display.refresh(15.0)
        display.close(16.0)


def test_a_hung_up_pipe_does_not_end_the_process() -> None:
    program = """
import os, sys
from cargobike.testing.journals import first_fact
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.display.plain import PlainDisplay
from cargobike.experiments.display.terminal import TerminalDisplay
reading, writing = os.pipe()
os.close(reading)
for kind in (TerminalDisplay, PlainDisplay):
    record = ExperimentRecord(first_fact(at=0.0, id="e", name="n"))
    display = kind(record, open(os.dup(writing), "w", encoding="utf-8"))
    display.refresh(0.0)
    display.refresh(1.0)
    display.close(2.0)
sys.stdout.write("alive")
sys.stdout.flush()
os._exit(0)  # the interpreter would complain about the pipe's buffer on its way out
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive"), done.stderr


def test_the_cursor_comes_back_when_nobody_closes_the_display() -> None:
    program = """
import sys
from cargobike.testing.journals import first_fact
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.display.display import choose_display
from cargobike.experiments.display.terminal import TerminalDisplay
display = choose_display(ExperimentRecord(first_fact(at=0.0, id="e", name="unclosed")), quiet=False)
assert isinstance(display, TerminalDisplay)
display.refresh(0.0)
display.refresh(1.0)
raise RuntimeError("boom")
"""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run([sys.executable, "-c", program], stdout=theirs, stderr=theirs, stdin=theirs, check=False)
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # what Linux answers when the other side is closed
                break
            if not part:
                break
            seen += part
    finally:
        os.close(ours)
    assert done.returncode == 1
    assert b"unclosed" in seen
    assert b"boom" in seen
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")


# Plain lines


def test_plain_lines_come_at_the_start_at_growing_pauses_and_at_the_end() -> None:
    stream = io.StringIO()
    display = PlainDisplay(new_record(), stream)
    tell(display, begin(num_trials=None))
    at: list[float] = []
    for tenth in range(6_000):
        now_s = tenth / 10
        tell(display, [*started(tenth, now_s), TrialEnded(at=now_s, trial=tenth, state="completed", value=1.0)])
        before = len(stream.getvalue())
        display.refresh(now_s)
        if len(stream.getvalue()) > before:
            at.append(now_s)
    pauses = [later - earlier for earlier, later in pairwise(at)]
    assert at[0] == 0.0
    assert pauses[0] == pytest.approx(10.0, abs=0.2)
    assert all(later >= earlier - 0.2 for earlier, later in pairwise(pauses))
    assert pauses[-1] == pytest.approx(60.0, abs=0.2)
    tell(display, [ExperimentEnded(at=600.0, state="completed")])
    display.close(600.0)
    lines = stream.getvalue().splitlines()
    assert len(lines) == len(at) + 1
    assert "finished, 6,000 trials · 6,000 completed" in lines[-1]


def test_plain_lines_say_everything_once() -> None:
    stream = io.StringIO()
    display = PlainDisplay(new_record(), stream)
    tell(display, begin())
    display.refresh(0.0)
    tell(display, busy_search()[3:])
    display.refresh(14.0)
    tell(display, started(20, 15.0))
    display.refresh(60.0)
    first, second, third = stream.getvalue().splitlines()
    assert first.startswith("[digits 20261115-220145-k3f9] starting workers, 0/60 trials")
    for expected in (
        "searching, 12/60 trials",
        "9 completed, 2 running, 1 paused, 2 stopped, 1 failed",
        "best accuracy 0.11 (max) in trial 11",
        "lr=0.00123457, act=relu",
        "left",
        "last failure: trial 3: ValueError: bad lr",
    ):
        assert expected in second
    assert "last failure" not in third


def test_plain_display_is_silent_while_nothing_changes() -> None:
    stream = io.StringIO()
    display = PlainDisplay(new_record(), stream)
    tell(display, begin())
    for second in range(1_000):
        display.refresh(float(second))
    assert len(stream.getvalue().splitlines()) == 1


def test_plain_display_says_at_once_that_it_is_stopping() -> None:
    stream = io.StringIO()
    display = PlainDisplay(new_record(), stream)
    tell(display, [*begin(), *started(0)])
    display.refresh(1.0)
    display.phase("stopping")
    display.phase("stopping")
    display.refresh(1.1)
    display.refresh(1.2)
    assert [("stopping" in line) for line in stream.getvalue().splitlines()] == [False, True]


def test_plain_lines_stay_lines_and_fit_the_encoding() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    display = PlainDisplay(new_record(), stream)
    tell(display, busy_search(name="é" + HOSTILE, params={"p\n": HOSTILE}, error=HOSTILE))
    display.close(14.0)
    text = raw.getvalue().decode("ascii")
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert text.startswith("[?<script>")
    assert " - best accuracy" in text


def test_an_experiment_that_was_broken_off_says_so() -> None:
    stream = io.StringIO()
    display = PlainDisplay(new_record(), stream)
    tell(display, busy_search())
    display.close(20.0)
    assert "broken off, 12/60 trials" in stream.getvalue()


# The notebook


def test_notebook_page_escapes_what_users_wrote() -> None:
    html = page(snapshot(busy_search(name=HOSTILE, params={"<b>p": HOSTILE}, error=HOSTILE)))
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&lt;b&gt;p=" in html
    assert not re.search(r"[\x00-\x1f\u202e]", html)


def test_notebook_page_says_everything() -> None:
    html = page(snapshot(busy_search()))
    for expected in (
        "digits",
        "searching",
        "12/60 trials",
        "9 completed",
        "accuracy 0.11 (max) in trial 11",
        "lr=0.00123457",
        "left",
        "2/2 workers busy",
        "trial 3: ValueError: bad lr",
        "width:15.00%",
    ):
        assert expected in html
    assert html.count("<div") == html.count("</div>")


def test_notebook_display_updates_one_output_in_place() -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    publishing = pytest.importorskip("IPython.core.displaypub")
    shell = interactive.InteractiveShell.instance()
    try:
        shell.display_pub = publisher = publishing.CapturingDisplayPublisher()
        display = NotebookDisplay(new_record())
        tell(display, busy_search())
        for tenth in range(21):
            tell(display, [Reported(at=14.0, trial=13, step=tenth, metrics={"loss": 1.0})])
            display.refresh(14.0 + tenth / 10)
        display.close(17.0)
    finally:
        interactive.InteractiveShell.clear_instance()
    outputs = publisher.outputs
    assert 3 <= len(outputs) <= 8
    assert len({output["transient"]["display_id"] for output in outputs}) == 1
    assert [bool(output.get("update")) for output in outputs] == [False] + [True] * (len(outputs) - 1)
    assert "12/60 trials" in outputs[0]["data"]["text/html"]
    assert outputs[0]["data"]["text/plain"].startswith("[digits ")


def test_a_real_kernel_gets_the_notebook_display() -> None:
    pytest.importorskip("ipykernel")
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    cell = """
from cargobike.core.facts import ExperimentEnded
from cargobike.testing.journals import first_fact
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.display.display import choose_display
record = ExperimentRecord(first_fact(at=0.0, id="e", name="in a notebook"))
display = choose_display(record, quiet=False)
display.refresh(0.0)
record.apply(ExperimentEnded(at=1.0, state="completed"))
display.close(1.0)
print(type(display).__name__)
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
    drawn_cell, printed = notebook.cells[0].outputs
    assert printed["text"] == "NotebookDisplay\n"
    assert "finished" in drawn_cell["data"]["text/html"]
    assert "starting workers" not in drawn_cell["data"]["text/html"]


# Choosing


@pytest.fixture
def in_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    class ZMQInteractiveShell:
        pass

    class Shell(ZMQInteractiveShell):
        """Some hosts subclass the kernel's shell."""

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=Shell))


def test_quiet_wins_everywhere(in_kernel: None) -> None:
    assert isinstance(choose_display(new_record(), quiet=True, stream=TtyStream()), QuietDisplay)


def test_a_kernel_gets_the_notebook_display(in_kernel: None) -> None:
    assert isinstance(choose_display(new_record(), quiet=False, stream=io.StringIO()), NotebookDisplay)


@pytest.mark.parametrize(
    ("variable", "value", "kind"),
    [
        ("TERM", "xterm", TerminalDisplay),
        ("TERM", "dumb", PlainDisplay),
        ("CI", "true", PlainDisplay),
        ("CI", "false", TerminalDisplay),
        ("CI", "", TerminalDisplay),
    ],
)
def test_a_terminal_gets_the_panel_if_somebody_watches(
    variable: str, value: str, kind: type[DrawnDisplay], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert type(choose_display(new_record(), quiet=False, stream=TtyStream())) is kind


def test_what_is_no_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(choose_display(new_record(), quiet=False, stream=io.StringIO()), PlainDisplay)
    closed = io.StringIO()
    closed.close()
    assert isinstance(choose_display(new_record(), quiet=False, stream=closed), PlainDisplay)
    monkeypatch.setattr(sys, "stderr", None)
    assert isinstance(choose_display(new_record(), quiet=False), QuietDisplay)


def test_a_terminal_that_cannot_show_lines_gets_plain_text() -> None:
    stream = TtyStream()
    stream.encoding = "ascii"
    assert isinstance(choose_display(new_record(), quiet=False, stream=stream), PlainDisplay)


def test_choosing_and_folding_load_neither_rich_nor_ipython() -> None:
    program = """
import sys
from cargobike.testing.journals import first_fact
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.display.display import choose_display
from cargobike.experiments.display.terminal import TerminalDisplay
record = ExperimentRecord(first_fact(at=0.0, id="e", name="n"))
choose_display(record, quiet=False)
display = TerminalDisplay(record, sys.stderr)
display.refresh(0.0)
display.refresh(0.1)
sys.stdout.write(",".join(sorted({"rich", "IPython"} & set(sys.modules))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""


# Words


def test_cleaning_bounds_the_length() -> None:
    assert clean("a" * 10_000_000, 20) == "a" * 19 + "…"
    assert clean("\x1b]0;title\x07a\tb\r\nc\ud800") == "a b c"


def test_parameters_of_any_kind_are_shown() -> None:
    class Moody:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    text = params({"lr": 1e-5, "n": 3, "on": True, "who": Moody(), "long": list(range(10_000)), "none": None})
    assert text.startswith("lr=1e-05  n=3  on=True  who=<Moody")
    assert "long=[0, 1, 2, 3, 4, 5, ...]" in text
    assert text.endswith("none=None")
    assert params({f"p{n}": n for n in range(1_000)}, length=30).endswith("more")


@pytest.mark.parametrize(
    ("per_s", "text"),
    [(2500.4, "2,500 trials/s"), (4.12, "4.1 trials/s"), (0.5, "30 trials/min"), (0.001, "3.6 trials/h")],
)
def test_rates_have_a_unit_that_fits(per_s: float, text: str) -> None:
    assert rate(per_s) == text


def test_all_displays_show_how_fast_rows_are_drawn_while_trials_run() -> None:
    seen = msgspec.structs.replace(snapshot(busy_search()), data_pace=DataPace(182_345.0, 0.031))
    words = "182,000 rows/s, 3% of the time waiting"
    assert words in "\n".join(drawn(seen, 100))
    assert f"data {words}" in plain_line(seen, shows_failure=False)
    assert words in page(seen)
    assert "rows/s" not in plain_line(snapshot(busy_search()), shows_failure=False)
