"""What a kind of storage must be able to do; waiting, trying again and words for people are added around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, NamedTuple

from cargobike.store.files.storage import Entry

PIECE_BYTES: Final = 4 << 20
"""How much of a file is held in memory at once while it is copied."""

TEMPORARY: Final = ".cargobike-new"
"""How the names of files end that are being written; nothing ever reads them."""

STALE_S: Final = 86_400.0
"""After how long a file that is being written was left behind by a process that died."""


class Judgement(NamedTuple):
    """What an error means.

    Attributes:
        may_pass: Whether the same call may succeed later.
        advice: What to do if it does not, for people; empty if there is nothing to add.
        reopen: Whether the storage must be opened anew first, since what we know of it has expired.
        text: What the error says, if its own words are not for people.
    """

    may_pass: bool
    advice: str = ""
    reopen: bool = False
    text: str = ""


@dataclass
class Claim:
    """One call of `create`, over all of its attempts.

    Attributes:
        token: Differs for each call; what is written carries it where the storage can keep it.
        was_asked: Whether an attempt has sent the request that creates the file, so that it may have been heard.
    """

    token: str = field(default_factory=lambda: token_hex(8))
    was_asked: bool = False


class Access(ABC):
    """Speaks to one storage through one library; belongs to the process that made it.

    Every call is one attempt and raises whatever the library raises. Paths were checked by the caller, and are relative
    to the address. For what the methods must guarantee see `Storage`.
    """

    @abstractmethod
    def read(self, path: str, start: int, length: int | None) -> bytes | None:
        """Return bytes of a file; `None` if there is no such file."""

    @abstractmethod
    def write(self, path: str, data: bytes | Path) -> None:
        """Write a file whole."""

    @abstractmethod
    def create(self, path: str, data: bytes, claim: Claim) -> bool:
        """Write a file if there is none; what an earlier attempt of the claim wrote counts."""

    @abstractmethod
    def list(self, folder: str, *, deep: bool) -> list[Entry]:
        """Return the files in a folder, none if there is no such folder."""

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """Return size and token of a file; `None` if there is no such file."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file or everything below a folder; what is not there is skipped."""

    @abstractmethod
    def judge(self, error: Exception) -> Judgement:
        """Say what an error of this library means."""

    def arrow(self) -> tuple[Any, str] | None:
        """Return pyarrow's own file system for this storage and the path on it; `None` if it has none."""
        return None


def temporary_name(path: str, token: str) -> str:
    """Return where a file lies while it is written: beside its place, hidden, with a name of its own.

    Example:
        >>> temporary_name("runs/7/head", "ab12")
        'runs/7/.head.ab12.cargobike-new'
    """
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name[:100]}.{token}{TEMPORARY}"


def is_temporary(path: str) -> bool:
    """Tell whether a file is only being written."""
    return path.endswith(TEMPORARY) and path.rpartition("/")[2].startswith(".")
