"""The parameters of requests: ids, numbers of trials, parts of lists."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$"

ExperimentId = Annotated[
    str,
    Path(
        pattern=ID_PATTERN,
        max_length=80,
        description="Full id of an experiment.",
        examples=["20261115-220145-k3f9"],
    ),
]
OneId = Annotated[str, Query(pattern=ID_PATTERN, description="Full id of an experiment.")]
TrialNumber = Annotated[int, Path(ge=0, le=2**31 - 1, description="Number of a trial, from 0.")]
TrialKey = Annotated[int, Field(ge=0, le=2**31 - 1)]
Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to return at most.")]
Words = Annotated[str, Query(max_length=2000, description="What to look for.")]
Name = Annotated[str | None, Query(min_length=1, max_length=200)]
