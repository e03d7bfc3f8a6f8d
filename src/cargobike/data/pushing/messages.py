"""What feeders and nodes say to each other: small typed headers; rows and results follow as bytes."""

from __future__ import annotations

from typing import Literal

import msgspec

Form = Literal["objects", "table"]
"""How a chunk is written: pickled objects, or a table of Arrow."""


class Open(msgspec.Struct, frozen=True, tag="open"):
    """A partition begins; if it `wants_results`, there must be one for each row."""

    queue: str
    wants_results: bool = False


class Rows(msgspec.Struct, frozen=True, tag="rows"):
    """Some rows of the partition, in the body."""

    form: Form


class EndOfPartition(msgspec.Struct, frozen=True, tag="partition-ends"):
    """No more rows follow of this partition."""


class EndOfFeed(msgspec.Struct, frozen=True, tag="feed-ends"):
    """No partition follows any more."""


class End(msgspec.Struct, frozen=True, tag="end"):
    """The node is not needed any more."""


ToNode = Open | Rows | EndOfPartition | EndOfFeed | End


class Taken(msgspec.Struct, frozen=True, tag="taken"):
    """The function has taken so many more chunks of this partition."""

    chunks: int


class Results(msgspec.Struct, frozen=True, tag="results"):
    """The next results for rows of this partition, in the body."""


class Alive(msgspec.Struct, frozen=True, tag="alive"):
    """Rows are welcome, or the function works on those of other partitions."""


class Closed(msgspec.Struct, frozen=True, tag="closed"):
    """The function takes no more rows; `problem` says what went wrong, if something did."""

    problem: str = ""


ToFeeder = Taken | Results | Alive | Closed

encode = msgspec.json.encode
decode_for_node = msgspec.json.Decoder(ToNode).decode
decode_for_feeder = msgspec.json.Decoder(ToFeeder).decode
