"""The one error tree of Cargobike, and what each error carries besides its message.

    CargobikeError                   (Exception)
    ├── InvalidInputError            (ValueError)       mistakes
    │   ├── RecordError                                 why
    │   ├── SpaceError
    │   ├── SignatureError           (TypeError)
    │   └── FunctionError            (TypeError)
    ├── NotFoundError                (LookupError)      wanted, nearest
    ├── TrialFailedError             (RuntimeError)     experiment, trial, rank, host, traceback, log_tail, result
    ├── ExperimentFailedError        (RuntimeError)     result
    ├── ProgramError                 (RuntimeError)     exit_code
    ├── PredictionError              (RuntimeError)
    ├── DeploymentError              (RuntimeError)
    ├── GateError                    (RuntimeError)     figures
    ├── StepFailedError              (RuntimeError)     run, step, name, traceback
    ├── RunCancelledError            (RuntimeError)     run
    ├── UntrustedError               (PermissionError)
    ├── ForbiddenError               (PermissionError)
    ├── OptimizerError               (RuntimeError)
    ├── EngineError                  (RuntimeError)
    ├── WaitError                    (TimeoutError)     missing
    ├── StoreError                   (OSError)
    │   ├── StillReadingError
    │   └── SupersededError
    ├── MissingLibraryError          (ImportError)      name
    ├── ConnectionLostError          (ConnectionError)
    ├── AuthenticationError          (ConnectionError)
    │   └── FrameError
    └── ServerRefusedError           (RuntimeError)
    TrialStopped                     (BaseException)
    └── TrialPaused

Every error is a `CargobikeError` and, where Python has a word for it, also the built-in that fits, so that
`except ValueError` works as people expect. A message says what was given, what is allowed and what to do. The last two
are no errors: they end a train function, and are meant to pass through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class CargobikeError(Exception):
    """Base of all errors that Cargobike raises on purpose."""


class InvalidInputError(CargobikeError, ValueError):
    """Something given to Cargobike cannot be used; lists every mistake found, not only the first."""

    def __init__(self, summary: str, mistakes: Sequence[str] = ()) -> None:
        self.mistakes = tuple(mistakes)
        lines = [summary, *(f"  - {mistake}" for mistake in self.mistakes)]
        super().__init__("\n".join(lines))


class RecordError(InvalidInputError):
    """A record of a sharing network is refused.

    Attributes:
        why: What is wrong with it, in one word that programs can compare.
    """

    def __init__(self, why: str, message: str) -> None:
        super().__init__(f"A record is refused: {message}.")
        self.why = why


class SpaceError(InvalidInputError):
    """A search space is wrong."""


class SignatureError(InvalidInputError, TypeError):
    """A space or a set of parameters does not fit the train function's signature."""


class FunctionError(InvalidInputError, TypeError):
    """A train function cannot be found, read or sent to a worker."""


class OptimizerError(CargobikeError, RuntimeError):
    """An optimizer broke its contract: it raised, or suggested something that is not a suggestion."""


class EngineError(CargobikeError, RuntimeError):
    """An engine could not give the workers that were asked for."""


class WaitError(CargobikeError, TimeoutError):
    """A deadline passed.

    Attributes:
        missing: Those that were waited for and did not come, such as `"rank 1 on tower"`, as far as they are known.
    """

    def __init__(self, message: str, *, missing: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.missing = tuple(missing)


class StoreError(CargobikeError, OSError):
    """A project could not be read or written."""


class StillReadingError(StoreError):
    """A long list is made for the first time, and that takes longer than its caller waits; ask again soon."""


class SupersededError(StoreError):
    """An experiment was resumed elsewhere before everything that is here had been sent."""


class MissingLibraryError(CargobikeError, ImportError):
    """An optional library is needed and not installed; the message says how to install it.

    Attributes:
        name: The library, as it is imported.
    """


class ConnectionLostError(CargobikeError, ConnectionError):
    """The other end has closed the connection or died."""


class AuthenticationError(CargobikeError, ConnectionError):
    """The other end does not know the secret or the token, cannot prove its name, or does not speak our protocol."""


class FrameError(AuthenticationError):
    """A frame is not the next one that the other end has sent."""

    def __init__(self, message: str = "a frame was changed, repeated, moved or left out on its way") -> None:
        super().__init__(message)


class ServerRefusedError(CargobikeError, RuntimeError):
    """A server did not do what it was asked: a parameter server, or that of a project elsewhere."""


class NotFoundError(CargobikeError, LookupError):
    """No experiment, trial, checkpoint or figure with that name.

    Attributes:
        wanted: What was asked for.
        nearest: Names that may have been meant: close ones, or all that fit if several do.
    """

    def __init__(self, message: str, *, wanted: str | int = "", nearest: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.wanted = str(wanted)
        self.nearest = tuple(nearest)


class TrialFailedError(CargobikeError, RuntimeError):
    """The train function failed; the message holds the user's own traceback.

    Attributes:
        experiment: Id of the experiment.
        trial: Number of the trial, `None` if it is not known.
        rank: Which rank of a gang failed; 0 for a trial of one worker, `None` if it is not known.
        host: The machine it ran on, empty if it is not known.
        traceback: The traceback of the train function as text, empty if there is none.
        log_tail: The last lines that this rank printed.
        result: The `Result`, with everything else that is known.
    """

    def __init__(
        self,
        message: str,
        *,
        experiment: str = "",
        trial: int | None = None,
        rank: int | None = None,
        host: str = "",
        traceback: str = "",
        log_tail: str = "",
        result: Any = None,  # a `Result`, which this room does not know
    ) -> None:
        super().__init__(message)
        self.experiment = experiment
        self.trial = trial
        self.rank = rank
        self.host = host
        self.traceback = traceback
        self.log_tail = log_tail
        self.result = result


class ExperimentFailedError(CargobikeError, RuntimeError):
    """An experiment failed: it was given up, or all its trials failed.

    Attributes:
        result: The `Result`: everything that was learned until then; `.failures` are the trials that failed.
    """

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class ProgramError(CargobikeError, RuntimeError):
    """A program that was run as a trial could not be started, failed, or gave no score.

    Attributes:
        exit_code: How it ended, negative for the signal that killed it; `None` if that is not why.
    """

    def __init__(self, message: str, *, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class PredictionError(CargobikeError, RuntimeError):
    """A predict function raised an error, or returned what is no prediction; says in which row."""


class DeploymentError(CargobikeError, RuntimeError):
    """A deployment could not be started, changed or reached; says which part of it failed, and why."""


class GateError(CargobikeError, RuntimeError):
    """A version of a model does not pass the gate before an alias.

    Attributes:
        figures: What was compared, by name: `{"accuracy": 0.91, "champion.accuracy": 0.94}`.
    """

    def __init__(self, message: str, *, figures: Mapping[str, float | None] | None = None) -> None:
        super().__init__(message)
        self.figures = dict(figures or {})


class StepFailedError(CargobikeError, RuntimeError):
    """A step of a pipeline failed, or was skipped because one before it did; the message holds its own traceback.

    Attributes:
        run: Id of the run.
        step: Number of the step.
        name: What the step is called.
        traceback: The traceback of the step as text, or why it has no result.
    """

    def __init__(self, message: str, *, run: str = "", step: int = 0, name: str = "", traceback: str = "") -> None:
        super().__init__(message)
        self.run = run
        self.step = step
        self.name = name
        self.traceback = traceback


class RunCancelledError(CargobikeError, RuntimeError):
    """A run of a pipeline was cancelled from elsewhere.

    Attributes:
        run: Id of the run.
    """

    def __init__(self, message: str, *, run: str = "") -> None:
        super().__init__(message)
        self.run = run


class UntrustedError(CargobikeError, PermissionError):
    """Loading something means running code that came from elsewhere, and that was not explicitly allowed."""


class ForbiddenError(CargobikeError, PermissionError):
    """A caller's role does not allow what was asked of a project elsewhere; says which role does."""


class TrialStopped(BaseException):
    """Raised inside a train function by `report` when its trial is to stop here.

    A `BaseException`, so that `except Exception` in user code does not swallow it; `finally` and `with` blocks
    run as usual.
    """


class TrialPaused(TrialStopped):
    """Raised instead of `TrialStopped` when the trial may be resumed later from its checkpoint."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the closest choice, or an empty string.

    Example:
        >>> nearest("asah", ["asha", "grid"])
        " Did you mean 'asha'?"
    """
    match = nearest_names(word, choices)
    return f" Did you mean {match[0]!r}?" if match else ""


def nearest_names(word: str, choices: Iterable[str], limit: int = 3) -> list[str]:
    """Return the choices that may have been meant, the closest first.

    Example:
        >>> nearest_names("asah", ["asha", "grid"])
        ['asha']
    """
    import difflib  # noqa: PLC0415 - for mistakes only, and every process of ours loads this module first

    word, candidates = str(word), list(choices)
    match = difflib.get_close_matches(word, candidates, n=limit, cutoff=0.5)
    if not match:
        match = [choice for choice in candidates if _abbreviates(choice, word) or _abbreviates(word, choice)]
    return match[:limit]


def _abbreviates(short: str, long: str) -> bool:
    """Tell whether `short` could abbreviate `long`: the initials of its words, or a prefix."""
    words = [word for word in long.replace("-", "_").split("_") if word]
    initials = "".join(word[0] for word in words)
    return len(short) >= 2 and len(short) < len(long) and (initials == short or long.startswith(short))
