"""What callers may give: ids, numbers of trials, parts of lists; and how refusals are documented."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query

from cargobike.experiments.pages.answers import Problem

ExperimentId = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$",
        max_length=80,
        description="Full id of an experiment.",
        examples=["20261115-220145-k3f9"],
    ),
]
TrialNumber = Annotated[int, Path(ge=0, le=2**31 - 1, description="Number of a trial, from 0.")]
Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Words = Annotated[str, Query(max_length=2000, description="What to look for.")]
Name = Annotated[str | None, Query(min_length=1, max_length=200)]

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request makes no sense."},
    401: {"model": Problem, "description": "A token is needed."},
    404: {"model": Problem, "description": "There is no such thing."},
    413: {"model": Problem, "description": "The body is too long."},
    414: {"model": Problem, "description": "The address is too long."},
    421: {"model": Problem, "description": "This server does not answer to that host name."},
    422: {"model": Problem, "description": "Something given cannot be used."},
    503: {"model": Problem, "description": "The project cannot be read just now."},
}
