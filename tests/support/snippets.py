"""Finds the code blocks of a Markdown file and runs them.

A comment on the line above a block says what to do with it:

- `<!-- snippet: skip REASON -->`: do not run it, and say why.
- `<!-- snippet: launch -->`: it starts workers (for readers of the source; it is run like any other).
- `<!-- snippet: run -->`: run a `console` or `bash` block too; those are otherwise only shown.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 300

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*$")
_MARK = re.compile(r"^ *<!-- snippet: (?P<word>\w+)(?: (?P<reason>.*?))? *-->$")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One code block: where it starts (the line of its first code line, from 1), and how it is marked."""

    language: str
    code: str
    line: int
    mark: str = ""
    reason: str = ""


def documents() -> list[Path]:
    """Return the README and every page of the docs and the examples."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "examples" / "README.md"]


def find_snippets(text: str) -> list[Snippet]:
    """Return the code blocks of a Markdown text, in order."""
    found: list[Snippet] = []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if not opening:
            number += 1
            continue
        mark = _MARK.match(lines[number - 1]) if number else None
        end = next(i for i in range(number + 1, len(lines)) if lines[i].strip() == "```")
        code = textwrap.dedent("\n".join(lines[number + 1 : end]))
        word, reason = (mark["word"], mark["reason"] or "") if mark else ("", "")
        found.append(Snippet(opening["language"], code, number + 2, word, reason))
        number = end + 1
    return found


def as_program(snippets: list[Snippet]) -> str:
    """Join snippets into one program in which every line keeps its number in the page."""
    lines: list[str] = []
    for snippet in snippets:
        lines.extend([""] * (snippet.line - 1 - len(lines)))
        lines.extend(snippet.code.splitlines())
    return "\n".join(lines) + "\n"


def python_of(found: list[Snippet]) -> list[Snippet]:
    """Return the Python blocks that are to be run."""
    return [snippet for snippet in found if snippet.language == "python" and snippet.mark != "skip"]


def commands_of(found: list[Snippet]) -> list[str]:
    """Return the commands of the shell blocks that are to be run; in a `console`, those after `$ `."""
    commands: list[str] = []
    for snippet in found:
        if snippet.mark == "run" and snippet.language == "console":
            lines = snippet.code.splitlines()
            commands.extend(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
        elif snippet.mark == "run" and snippet.language == "bash":
            commands.append(snippet.code)
    return commands


def environment(folder: Path) -> dict[str, str]:
    """Return variables with which a program finds this checkout, its command line and a project."""
    programs = folder / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    cargobike = programs / "cargobike"
    cargobike.write_text(f"#!{sys.executable}\nfrom cargobike.cli import main\n\nmain()\n")
    cargobike.chmod(0o755)
    return dict(
        os.environ,
        PYTHONPATH=str(ROOT / "src"),
        PATH=os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]),
        CARGOBIKE_PROJECT=os.environ["CARGOBIKE_PROJECT"],
    )


def run(command: list[str], folder: Path, variables: dict[str, str], *, timeout_s: float = TIMEOUT_S) -> str:
    """Run a command in a folder and return what it printed; fail with all of it if the command fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode} of {command}:\n{done.stdout}"
    return done.stdout
