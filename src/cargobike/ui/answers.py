"""The shapes of answers that all rooms share, and what the shapes of every room are made of.

A shape is written once: the server encodes it, the OpenAPI document is made of its fields, the client decodes it. So
these files load nothing but msgspec; what needs a web framework lies in `ui.web`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from cargobike.core.registering.lazy import load

Field = msgspec.Meta
"""What a field must be beyond its type, and what it means: `Annotated[int, Field(ge=0, description="…")]`."""

_MODEL_OF = "cargobike.ui.web.answering:model_of"
"""By name: only a server that writes its OpenAPI document has the library behind it."""


class Answer(msgspec.Struct):
    """The base of all shapes that the API answers with.

    An endpoint makes one and `sends` encodes its fields, in the order of their definition; the OpenAPI document is made
    of the same fields. Every field is sent. A page of a thousand trials takes a ninth of the time that models of
    pydantic would take.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: Any) -> Any:
        """Describe the fields to the OpenAPI document."""
        return handler.generate_schema(load(_MODEL_OF)(cls))


class Mistake(Answer):
    """One thing that is wrong with a request."""

    where: Annotated[list[str], Field(description="Where it is: `query` or `body`, and the name of the value.")]
    what: Annotated[str, Field(description="What is wrong, or what is allowed.")]


class Problem(Answer):
    """Why a request was refused: one shape for all refusals."""

    detail: Annotated[str, Field(description="What was given, what is allowed, and what to do, in words.")]
    mistakes: Annotated[
        list[Mistake], Field(description="Every mistake, if there are several or a value is wrong.")
    ] = []
    nearest: Annotated[list[str], Field(description="Names that may have been meant.")] = []


class ServerInfo(Answer):
    """About this server."""

    version: str
    project: str
    may_stop: Annotated[bool, Field(description="Whether the caller may start, stop and change things.")]
    role: Annotated[str, Field(description="What the caller may do: `read`, `run` or `administer`.")] = "administer"


class KeptThing(Answer):
    """A version of something that the project keeps."""

    kind: Annotated[str, Field(description="`group`, `view`, `dataset`, `table`, `file`, `experiment`, …")]
    name: str
    version: Annotated[str, Field(description="Empty for what has no versions.")]
    title: Annotated[str, Field(description="What people call it, where its name is an id; empty otherwise.")]
    page: Annotated[str, Field(description="The address of its page; empty if it has none.")]


class Step(Answer):
    """A thing and another that it came from."""

    made: KeptThing
    source: KeptThing
    relation: Annotated[str, Field(description="`made from`, `trained on`, `serves`, …")]
    detail: Annotated[str, Field(description="More about it: a commit, features, a part.")]


class LineageAnswer(Answer):
    """What things came from, and what came from them, step by step, the nearest first."""

    things: list[KeptThing]
    came_from: list[Step]
    used_by: list[Step]
    total_came_from: Annotated[int, Field(ge=0, description="How many steps there are in all.")]
    total_used_by: Annotated[int, Field(ge=0, description="How many steps there are in all.")]
    problems: Annotated[list[str], Field(description="Why not everything is known; empty if it is.")]


class Use(Answer):
    """Something that was made from a thing, trained on it, or serves it."""

    thing: KeptThing
    relation: Annotated[str, Field(description="`made from`, `trained on`, `serves`, …")]
    detail: Annotated[str, Field(description="More about it: features, a commit, a part.")]


class SearchHit(Answer):
    """A thing that fits."""

    kind: Annotated[str, Field(description="`model`, `table`, `experiment`, `group`, …")]
    name: str
    page: Annotated[str, Field(description="The address of its page.")]
    text: Annotated[str, Field(description="What it is, for people.")]
    tags: list[str]
    where: Annotated[str, Field(description="Where the words were: `name`, `tag`, `column`, `description`, `words`.")]
    at: Annotated[str, Field(description="When it was made; empty if that is not known.")]


class SearchAnswer(Answer):
    """What fits some words, the best first."""

    hits: list[SearchHit]
    kinds: Annotated[dict[str, int], Field(description="How many of each kind fit.")]
    total: Annotated[int, Field(ge=0)]
    offset: Annotated[int, Field(ge=0)]
    limit: Annotated[int, Field(ge=0)]
    is_complete: Annotated[bool, Field(description="Whether everything was listed by now; if not, ask again.")]
    problems: Annotated[list[str], Field(description="Why a product could not list what it has.")]
