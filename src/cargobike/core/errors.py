"""The one error tree of Cargobike.

Every error is a `CargobikeError` and, where Python has a word for it, also the built-in that fits, so that
`except ValueError` works as people expect. A message says what was given, what is allowed and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class CargobikeError(Exception):
    """Base of all errors that Cargobike raises on purpose."""


class InvalidInputError(CargobikeError, ValueError):
    """Something given to Cargobike cannot be used; lists every mistake found, not only the first."""

    def __init__(self, summary: str, mistakes: Sequence[str] = ()) -> None:
        self.mistakes = tuple(mistakes)
        lines = [summary, *(f"  - {mistake}" for mistake in self.mistakes)]
        super().__init__("\n".join(lines))


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
    """A deadline passed; the message names who is missing."""


class StoreError(CargobikeError, OSError):
    """A project could not be read or written."""


class MissingLibraryError(CargobikeError, ImportError):
    """An optional library is needed and not installed; the message says how to install it."""


class NotFoundError(CargobikeError, LookupError):
    """No experiment, trial or checkpoint with that name."""


class TrialFailedError(CargobikeError, RuntimeError):
    """The train function failed; the message holds the user's own traceback."""


class ExperimentFailedError(CargobikeError, RuntimeError):
    """An experiment was given up; `result` holds everything that was learned until then."""

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result


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
    candidates = list(choices)
    match = difflib.get_close_matches(word, candidates, n=1, cutoff=0.5)
    if not match:
        initials = [choice for choice in candidates if _abbreviates(choice, word) or _abbreviates(word, choice)]
        match = initials[:1]
    return f" Did you mean {match[0]!r}?" if match else ""


def _abbreviates(short: str, long: str) -> bool:
    """Tell whether `short` could abbreviate `long`: the initials of its words, or a prefix."""
    words = [word for word in long.replace("-", "_").split("_") if word]
    initials = "".join(word[0] for word in words)
    return len(short) >= 2 and len(short) < len(long) and (initials == short or long.startswith(short))
