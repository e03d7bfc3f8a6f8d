"""A command line as a train function."""

from __future__ import annotations

import collections
import inspect
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cargobike.core import settings
from cargobike.core.errors import FunctionError, ProgramError, TrialStopped
from cargobike.core.values.kinds import read_mapping, read_path, read_several, read_text
from cargobike.experiments.trial import context
from cargobike.experiments.trial.command import Program, measures
from cargobike.experiments.trial.command.arguments import (
    ALL_PARAMETERS,
    SURROUNDINGS,
    fill,
    fill_variables,
    placeholders,
)
from cargobike.experiments.trial.command.process import Stream, run_process

_LAST_LINES = 20
_LONGEST_COMMAND = 2000


class Command(Program):
    r"""A program with placeholders for parameters, which can be launched like a train function.

    Each trial runs the program, without a shell, in the directory in which the command was made. What it prints is the
    trial's output. An exit code other than 0 is a failure, with the last lines that it printed.

    Its score is read, in this order, from the `file`, from the last line that matches the `pattern`, from the last
    report, or from the last line of its standard output: a number, or a JSON object of numbers.

    Args:
        command: Program and arguments, as a list; a text is split as a shell would. `{lr}` stands for the parameter
            `lr`, `{flags}` for all of them as `--lr 0.1`, `{overrides}` for all of them as `lr=0.1`; `{folder}` for the
            trial's folder of files, and `{trial}`, `{attempt}`, `{seed}`, `{rank}`. `{{lr}}` stands for `{lr}` itself.
        metric: What a number is called that has no name of its own.
        file: Where the program writes its score; placeholders are filled in, and a relative path begins in `directory`.
        pattern: A regular expression with a group for each number, such as `"accuracy: (?P<accuracy>\S+)"`.
        report: A regular expression for lines to report, for curves and early stopping: its groups are metrics, and
            `step` if there is one, as in `"epoch (?P<step>\d+) loss (?P<loss>\S+)"`.
        env: Environment variables for the program, with placeholders.
        directory: Where it runs; by default the working directory.

    Raises:
        FunctionError: If there is no such program, or a pattern is no regular expression.

    Example:
        >>> import sys
        >>> program = Command([sys.executable, "-c", "print({x} ** 2)"])
        >>> program(x=3)
        9
        {'value': 9.0}
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        metric: str = "value",
        file: str | os.PathLike[str] | None = None,
        pattern: str | None = None,
        report: str | None = None,
        env: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        self._arguments = _read_arguments(command)
        self._metric = read_text("metric", metric)
        self._file = None if file is None else read_path("file", file)
        self._pattern = None if pattern is None else measures.read_pattern(pattern, "pattern")
        self._report = None if report is None else measures.read_pattern(report, "report")
        variables = read_mapping("env", env or {}, "{'CUDA_VISIBLE_DEVICES': '0'}")
        self._env = {str(name): str(text) for name, text in variables.items()}
        self._directory = os.path.abspath(os.getcwd() if directory is None else read_path("directory", directory))
        if not os.path.isdir(self._directory):
            raise FunctionError(f"directory={self._directory!r}: there is no such folder to run the program in.")
        self._program = self._find_program()
        self.title = self._title()
        all_of_them = [f"{{{name}}}" for name in ALL_PARAMETERS]
        self.takes_any = any(part in all_of_them for part in self._arguments)
        single = [part for part in self._arguments if part not in all_of_them]
        self.places = placeholders([*single, *self._env.values(), *([self._file] if self._file else [])])
        self.__signature__ = self._as_signature()

    def _title(self) -> str:
        """Return the program, and the script that it runs."""
        names = [os.path.basename(part) for part in self._arguments[:4] if not part.startswith("-") and "{" not in part]
        return " ".join(names[:2]).replace(":", " ") or self._arguments[0]

    def __repr__(self) -> str:
        return f"Command({shlex.join(self._arguments)!r})"

    def __call__(self, **params: Any) -> dict[str, Any]:
        """Run the program with these parameters and return its score.

        Raises:
            ProgramError: If it cannot be started, fails, or says no score.
            TrialStopped: If the trial is to end; the program has been ended.
        """
        trial = context.current()
        trial.files.mkdir(parents=True, exist_ok=True)
        known = dict(
            zip(SURROUNDINGS, (str(trial.files), trial.id, trial.attempt, trial.seed, trial.rank), strict=True)
        )
        arguments = fill(self._arguments[1:], params, known)
        heard = _Heard(trial, self._metric, self._pattern, self._report)
        code = run_process(
            [self._program, *arguments],
            directory=self._directory,
            variables={**os.environ, **_told(params, known), **fill_variables(self._env, params, known)},
            on_line=heard.take,
            on_tick=heard.check,
        )
        if code:
            run = shlex.join([self._arguments[0], *arguments])
            raise ProgramError(
                f"{self.title} {_ended(code)}.{heard.last_words()}\nIt was run as:\n  {run[:_LONGEST_COMMAND]}",
                exit_code=code,
            )
        if self._file is not None:
            if not (path := fill([self._file], params, known)):
                raise ProgramError(f"file={self._file!r} names a parameter that this trial does not have: {params}.")
            return measures.read_file(Path(self._directory) / path[0], self._metric)
        return heard.score()

    def _find_program(self) -> str:
        if not self._arguments or not self._arguments[0]:
            raise FunctionError("The command is empty; give a program and its arguments: ['python', 'train.py'].")
        name = self._arguments[0]
        if os.sep in name:
            path = os.path.join(self._directory, name)
            found = path if os.access(path, os.X_OK) and os.path.isfile(path) else None
        else:
            found = shutil.which(name) or (sys.executable if name in ("python", "python3") else None)
        if found is None:
            raise FunctionError(
                f"There is no program {name!r} that could be run; looked in {self._directory} and PATH."
            )
        return found

    def _as_signature(self) -> inspect.Signature:
        """Return what parameters the command has a place for, as far as Python could name them."""
        kinds = inspect.Parameter
        own = [name for name in self.places if name not in SURROUNDINGS]
        parameters = [kinds(name, kinds.KEYWORD_ONLY) for name in own if name.isidentifier()]
        if self.takes_any or len(parameters) < len(own):
            parameters.append(kinds("params", kinds.VAR_KEYWORD))
        return inspect.Signature(parameters)


class _Heard:
    """What a program has said so far."""

    def __init__(self, trial: context.Context, metric: str, pattern: Any, report: Any) -> None:
        self._trial = trial
        self._metric = metric
        self._pattern = pattern
        self._report = report
        self._tail: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        self._last_line = ""
        self._matched: dict[str, float] | None = None
        self._reported: dict[str, float] | None = None

    def take(self, stream: Stream, line: str) -> None:
        """Look at a line, and report what it says."""
        self._tail.append(line)
        if stream == "stdout" and line.strip():
            self._last_line = line.strip()
        if self._pattern is not None:
            self._matched = measures.find_numbers(self._pattern, line, self._metric) or self._matched
        numbers = None if self._report is None else measures.find_numbers(self._report, line, self._metric)
        if numbers:
            step = numbers.pop(measures.STEP, None)
            self._reported = numbers
            self._trial.report(numbers, None if step is None else int(step))

    def check(self) -> None:
        """End here if the trial was asked to stop."""
        if self._trial.should_stop:
            raise TrialStopped(f"trial {self._trial.id} was asked to stop")

    def score(self) -> dict[str, Any]:
        """Return the numbers that count at the end."""
        found: dict[str, Any] | None
        if self._pattern is not None:
            found, wanted = self._matched, f"no line matched pattern={self._pattern.pattern!r}"
        elif self._report is not None:
            found, wanted = self._reported, f"no line matched report={self._report.pattern!r}"
        else:
            found = measures.read_score(self._last_line, self._metric)
            wanted = f"its last line is neither a number nor a JSON object: {self._last_line[:200]!r}"
        if found is None:
            raise ProgramError(
                f"The program ended without a score: {wanted}. Print the score as last line, or say where it is: "
                f"file=…, pattern=… .{self.last_words()}"
            )
        return dict(found)

    def last_words(self) -> str:
        """Return the last lines that were printed, for a message."""
        return "" if not self._tail else "\nIts last lines:\n" + "\n".join(f"  {line[:500]}" for line in self._tail)


def _told(params: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, str]:
    """Return what every program finds in its environment."""
    return {
        settings.FOLDER: known["folder"],
        settings.TRIAL: known["trial"],
        settings.ATTEMPT: str(known["attempt"]),
        settings.SEED: str(known["seed"]),
        settings.PARAMS: json.dumps(dict(params)),
        "PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED", "1"),  # otherwise reports come late, and all at once
    }


def _ended(code: int) -> str:
    if code > 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _read_arguments(command: object) -> list[str]:
    """Return program and arguments, of which a text is split as a shell would."""
    if isinstance(command, str):
        try:
            return shlex.split(command)
        except ValueError as error:
            raise FunctionError(f"The command {command!r} cannot be split: {error}. Give a list instead.") from None
    parts = read_several("a command", command, "['python', 'train.py', '--lr', '{lr}']")
    return [
        str(part) if type(part) in (int, float) else read_path("each part of a command", part, may_be_empty=True)
        for part in parts
    ]
