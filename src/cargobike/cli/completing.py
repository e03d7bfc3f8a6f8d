"""Completion in the shell: what begins as the word that a person is typing. It never fails and never prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from itertools import pairwise
from typing import Final

import typer

from cargobike.core.errors import CargobikeError
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products
from cargobike.store.files import project

Completions = Iterable[tuple[str, str]]
"""Words, each with what it stands for."""

SHELL: Final = "_CARGOBIKE_COMPLETE"
_WORDS, _AT = "COMP_WORDS", "COMP_CWORD"
_PLAIN: Final = re.compile(r"[\w.@%+,/:-]+")


def fitting(choices: Completions, incomplete: str) -> list[tuple[str, str]]:
    """Return the choices that begin like this, each once; those that a shell would take apart are left out."""
    try:
        return [
            (word, about)
            for word, about in dict(choices).items()
            if word.startswith(incomplete) and _PLAIN.fullmatch(word)
        ]
    except (CargobikeError, OSError):
        return []


def fitting_in_project(
    ctx: typer.Context, choices: Callable[[], Completions], incomplete: str
) -> list[tuple[str, str]]:
    """Return the choices that begin like this in the project that the command line names with `--project`, or else."""
    try:
        if named := ctx.find_root().params.get("project"):
            project.use(named)
    except CargobikeError:
        return []
    return fitting(choices(), incomplete)


def complete_things(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the name or id of anything that has a page."""
    return fitting_in_project(ctx, _things, incomplete)


def _things() -> Iterator[tuple[str, str]]:
    for product in products():
        if product.find_page and product.list_names:
            yield from load(product.list_names)()


@contextlib.contextmanager
def answered_shell() -> Iterator[None]:
    """While entered, the command line may answer a shell that asks for completions.

    For bash, `train.py:main` is three words: they are put together for us, and what we answer begins behind the colon.
    """
    if os.environ.get(SHELL) != "complete_bash":
        yield
        return
    prefix = join_words(os.environ)
    answer = io.StringIO()
    try:
        with contextlib.redirect_stdout(answer):
            yield
    finally:
        sys.stdout.write("".join(line.removeprefix(prefix) for line in answer.getvalue().splitlines(keepends=True)))


def join_words(variables: MutableMapping[str, str]) -> str:
    """Put together the words that bash took apart at colons, in the variables that it passes.

    Returns:
        The part of the word to complete that stands before its last colon, with it; bash will keep that part.
    """
    words, at = variables.get(_WORDS, "").split("\n"), int(variables.get(_AT, "0"))
    joined, place = words[:1], at
    for index, (before, word) in enumerate(pairwise(words), 1):
        if ":" in (before, word):
            joined[-1] += word
            place -= index <= at
        else:
            joined.append(word)
    variables[_WORDS], variables[_AT] = "\n".join(joined), str(place)
    return "".join(joined[place].rpartition(":")[:2]) if place < at and place < len(joined) else ""
