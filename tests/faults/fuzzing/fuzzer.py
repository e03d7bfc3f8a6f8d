"""Runs targets on changed inputs, and notices what must not happen."""

from __future__ import annotations

import hashlib
import random
import re
import resource
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from faults.fuzzing.mutations import Mutator
from faults.fuzzing.targets import Target

CORPUS = Path(__file__).resolve().parent / "corpus"
SLOWEST_S = 5.0
HANGS_S = 20.0
ROOM_BYTES = 2 << 30
"""How much more memory than at its start a run may take."""
_MOST_KEPT = 400


_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


class TookTooLong(BaseException):
    """An input is not done with after a long time."""


@dataclass(frozen=True)
class Mistake:
    """An input that led to something that must not happen."""

    target: str
    data: bytes
    what: str

    def save(self) -> Path:
        """Keep the input, so that every run begins with it."""
        path = CORPUS / self.target / hashlib.sha256(self.data).hexdigest()[:16]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data)
        return path


@dataclass
class Fuzzer:
    """Tries inputs on one target.

    Inputs that ended in a way in which none had before are kept, and changed further.
    """

    target: Target
    seed: int
    mistakes: list[Mistake] = field(default_factory=list)
    tried: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(f"{self.target.name} {self.seed}")
        self._mutator = Mutator(self._rng)
        self._kept: list[bytes] = [*self.target.examples, *(data for _, data in corpus_of(self.target.name))]
        self._seen: set[str] = set()
        self._blamed: set[str] = set()

    def run(self, inputs: int, most_mistakes: int = 20) -> None:
        """Try so many inputs, those of the corpus first."""
        for data in list(self._kept):
            self._try(data)
        for _ in range(inputs):
            if len(self.mistakes) >= most_mistakes:
                return
            data = self._mutator.mutate(self._rng.choice(self._kept), self.target.form, self._kept)
            if self._try(data) and len(self._kept) < _MOST_KEPT and len(data) < 20_000:
                self._kept.append(data)

    def _try(self, data: bytes) -> bool:
        """Try an input; returns whether it ended in a new way."""
        self.tried += 1
        way, what = outcome(self.target, data)
        if what and way not in self._blamed:
            self._blamed.add(way)
            self.mistakes.append(Mistake(self.target.name, data, what))
        is_new = way not in self._seen
        self._seen.add(way)
        return is_new


def outcome(target: Target, data: bytes) -> tuple[str, str]:
    """Return the way in which an input ended, and what is wrong with that; empty if nothing is."""
    began = time.perf_counter()
    try:
        with _deadline():
            target.run(data)
        way, what = "ok", ""
    except target.allowed as error:
        way, what = f"{_place(error)}: {_QUOTED.sub('', str(error))[:100]}", ""
    except (Exception, TookTooLong) as error:
        way, what = f"not allowed: {_place(error)}", "".join(traceback.format_exception(error)[-12:])
    took_s = time.perf_counter() - began
    if not what and took_s > SLOWEST_S:
        way, what = "slow", f"took {took_s:.1f} s"
    return way, what


def _place(error: BaseException) -> str:
    """Name an error by its type and the lines that it came through, the last few of them."""
    frames = [(frame.f_code.co_name, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return f"{type(error).__name__} at " + ", ".join(f"{name}:{line}" for name, line in frames[-4:])


@contextmanager
def _deadline() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_REAL, HANGS_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


@contextmanager
def watched() -> Iterator[None]:
    """Make an input that hangs fail, within this context."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise TookTooLong(f"is not done after {HANGS_S:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


def limit_memory() -> None:
    """Make an input that wants gigabytes fail with a `MemoryError`."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def corpus_of(target: str) -> Sequence[tuple[Path, bytes]]:
    """Return the inputs that are kept for a target."""
    return [(path, path.read_bytes()) for path in sorted((CORPUS / target).glob("*"))]
