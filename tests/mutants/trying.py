"""Runs tests against mutants: each in a copy of the process that has collected the tests, with a time limit."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType

import pytest

from mutants.mutations import Mutant, mutants_of
from mutants.swapping import functions_of, swap

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "cargobike"

PASSED, FAILED, UNCHANGED, BROKEN, LATE = 0, 1, 2, 3, 4


@dataclass(slots=True)
class Outcome:
    """What became of the mutants of a module; `untried` are those that cannot take the place of what is loaded."""

    tried: int = 0
    untried: int = 0
    survivors: list[str] = field(default_factory=list)
    trouble: str = ""


@dataclass(slots=True)
class Trying:
    """A plugin for pytest that runs the collected tests once as they are, and once for each mutant."""

    module: str
    most: int
    seed: int
    say: Callable[[str], None]
    outcome: Outcome = field(default_factory=Outcome)
    _order: list[pytest.Item] = field(default_factory=list)
    _functions: list[FunctionType] = field(default_factory=list)

    @property
    def path(self) -> str:
        return str(SOURCES / self.module)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._order = list(session.items)
        self._functions = functions_of(self.path)
        began = time.monotonic()
        if not self._order or self._run(session, None, timeout_s=600.0) != PASSED:
            self.outcome.trouble = f"{self.module}: its {len(self._order)} tests do not pass without any mutant"
            return True
        timeout_s = 10.0 + 5.0 * (time.monotonic() - began)
        for mutant in self._chosen():
            code = self._run(session, mutant, timeout_s)
            self.outcome.untried += code == UNCHANGED
            self.outcome.tried += code != UNCHANGED
            if code == BROKEN:
                self.outcome.trouble = f"{self.module}:{mutant}: it could not be tried"
            elif code == PASSED:
                self.outcome.survivors.append(str(mutant))
                self.say(f"  survived {self.module}:{mutant}")
        return True

    def _chosen(self) -> list[Mutant]:
        every = list(mutants_of(Path(self.path).read_text(encoding="utf-8")))
        if len(every) > self.most:
            every = random.Random(f"{self.seed} {self.module}").sample(every, self.most)
        return sorted(every, key=lambda mutant: mutant.line)

    def _run(self, session: pytest.Session, mutant: Mutant | None, timeout_s: float) -> int:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._try(session, mutant, writing)
        os.close(writing)
        code = _wait(pid, timeout_s)
        with open(reading, encoding="utf-8") as pipe:
            numbers = [int(number) for number in pipe.read().split()]
        if code == FAILED:  # what has noticed one mistake often notices the next
            self._order.insert(0, self._order.pop(numbers[0]))
        elif numbers:
            self._order = [self._order[number] for number in numbers]
        return code

    def _try(self, session: pytest.Session, mutant: Mutant | None, writing: int) -> None:
        """Run the tests in this new process until one fails, and end the process.

        Writes which one failed, or without a mutant the numbers of all, the quickest first.
        """
        code = BROKEN
        try:
            os.setpgid(0, 0)
            code = UNCHANGED
            if mutant is None or swap(self._functions, self.path, mutant.source):
                code = PASSED
                times_s: list[float] = []
                for number, item in enumerate(self._order):
                    following = self._order[number + 1] if number + 1 < len(self._order) else None
                    began = time.perf_counter()
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    times_s.append(time.perf_counter() - began)
                    if session.testsfailed:
                        os.write(writing, str(number).encode())
                        code = FAILED
                        break
                if mutant is None and code == PASSED:
                    numbers = sorted(range(len(times_s)), key=times_s.__getitem__)
                    os.write(writing, " ".join(map(str, numbers)).encode())
        except BaseException:
            traceback.print_exc()
            code = BROKEN
        finally:
            sys.stdout.flush()
            os._exit(code)


def _wait(pid: int, timeout_s: float) -> int:
    """Return how a process ended, and end all that it has started."""
    deadline = time.monotonic() + timeout_s
    code = LATE
    while code == LATE and time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
        else:
            time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if code == LATE:
        os.waitpid(pid, 0)
    return code


def try_module(module: str, tests: tuple[str, ...], most: int, seed: int) -> Outcome:
    """Try the mutants of a module on its tests; what pytest prints is shown only if the tests fail without any."""
    sys.stdout.flush()
    screen = os.dup(1)
    with tempfile.TemporaryFile() as output:
        os.dup2(output.fileno(), 1)

        def say(line: str) -> None:
            os.write(screen, f"{line}\n".encode())

        trying = Trying(module, most, seed, say)
        without = ("cacheprovider", "schemathesis", "xdist")
        options = ["-q", "-x", "-m", "not slow", *(f"-pno:{plugin}" for plugin in without)]
        loaded_before = "-Wignore::pytest.PytestAssertRewriteWarning"
        pytest.main([*options, loaded_before, *(str(ROOT / test) for test in tests)], plugins=[trying])
        sys.stdout.flush()
        os.dup2(screen, 1)
        os.close(screen)
        if trying.outcome.trouble or not trying.outcome.tried:
            output.seek(0)
            words = output.read().decode(errors="replace")[-4000:]
            trying.outcome.trouble = f"{trying.outcome.trouble or f'{module}: nothing was tried'}\n{words}"
    return trying.outcome
