"""A storage that waits, tries again and explains: the one place where that is done, for every kind of storage."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from cargobike.core import settings
from cargobike.core.errors import CargobikeError, InvalidInputError, StoreError
from cargobike.core.running.forks import abandon_in_copies, never_free
from cargobike.store.files.access.access import Access, Claim, Judgement
from cargobike.store.files.storage import Entry, Storage
from cargobike.store.history.environment import without_credentials

_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
_WARN_AFTER_S: Final = 2.0
_SECRET_NAMES: Final = re.compile(r"SECRET|TOKEN|PASSWORD|ACCESS_KEY|CREDENTIAL")
_QUERY: Final = re.compile(r"(\w+://[^\s?]+)\?\S+")

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class PatientStorage(Storage):
    """The files below one address, asked for again until a deadline when the storage does not answer.

    Each process opens the storage for itself when it first needs it, so that one may be forked, and sent to others.

    Args:
        url: The address.
        open_access: Opens it; called once in each process, and again when what it knows has expired.
        timeout_s: How long to try; by default what `CARGOBIKE_STORAGE_TIMEOUT_S` says when something is tried.
    """

    def __init__(self, url: str, open_access: Callable[[], Access], timeout_s: float | None = None) -> None:
        self.url = url
        self._open = open_access
        self._timeout_s = timeout_s
        self._access: tuple[int, Access] | None = None

    def __str__(self) -> str:
        return without_credentials(self.url)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "_open": self._open, "_timeout_s": self._timeout_s}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["url"], state["_open"], state["_timeout_s"])  # type: ignore[misc]

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes | None:
        """Return the bytes of a file from `start` on, `length` of them or all; `None` if there is no such file."""
        if start < 0 or (length is not None and length < 0):
            raise InvalidInputError(f"start and length must not be negative, {start} and {length} were given.")
        name = checked(path)
        return self._patiently("read", name, lambda access: access.read(name, start, length))

    def write(self, path: str, data: bytes | Path) -> None:
        """Write a file whole, and replace what was there; `data` are its bytes, or a local file that holds them."""
        name = checked(path)
        if isinstance(data, Path):
            data.stat()  # what is not here is an error of the caller's, not of the storage
        self._patiently("written to", name, lambda access: access.write(name, data))

    def create(self, path: str, data: bytes) -> bool:
        """Write a file if there is none; returns whether it was this call that wrote it."""
        name, claim = checked(path), Claim()
        return self._patiently("written to", name, lambda access: access.create(name, data, claim))

    def list(self, folder: str = "", *, deep: bool = False) -> Iterator[Entry]:
        """Yield the files in a folder, with `deep` also those in folders below it, in any order."""
        name = checked(folder, may_be_empty=True)
        yield from self._patiently("listed", name, lambda access: access.list(name, deep=deep))

    def stat(self, path: str) -> Entry | None:
        """Return size and token of a file; `None` if there is no such file."""
        name = checked(path)
        return self._patiently("read", name, lambda access: access.stat(name))

    def delete(self, *paths: str) -> None:
        """Delete files, and everything below a path that names a folder; what is not there is skipped."""
        for path in paths:
            name = checked(path)
            self._patiently("written to", name, lambda access, name=name: access.delete(name))  # type: ignore[misc]

    def arrow(self) -> tuple[Any, str]:
        """Return a file system of `pyarrow.fs`, and the address's path on it, to read large files in place."""
        own = self._patiently("read", "", lambda access: access.arrow())
        if own is not None:
            return own
        from cargobike.store.files.arrow_files import arrow_files  # noqa: PLC0415 - needs pyarrow; only for tables

        return arrow_files(self), ""

    def _patiently(self, what: str, path: str, action: Callable[[Access], _T]) -> _T:
        """Do something with the storage, again and again while that may help and time is left."""
        begun = time.monotonic()
        pause_s, has_warned = _FIRST_PAUSE_S, False
        while True:
            judge: Callable[[Exception], Judgement] = _judge_opening
            try:
                access = self._opened()
                judge = access.judge
                return action(access)
            except CargobikeError:
                raise
            except Exception as error:  # noqa: BLE001 - each library has errors of its own
                judgement, now = judge(error), time.monotonic()
                give_up_at = begun + (settings.storage_timeout_s() if self._timeout_s is None else self._timeout_s)
                if not judgement.may_pass or now >= give_up_at:
                    raise self._explained(error, judgement, what, path, now - begun) from _harmless(error, self.url)
                if judgement.reopen:
                    self._drop()
                if not has_warned and now - begun >= _WARN_AFTER_S:
                    has_warned = True
                    words = "%s does not answer (%s); trying again for up to %.0f s."
                    _log.warning(words, self, clean(_text(error, judgement), self.url), give_up_at - now)
            time.sleep(max(0.0, min(pause_s, give_up_at - time.monotonic())))
            pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)

    def _explained(self, error: Exception, judgement: Judgement, what: str, path: str, tried_s: float) -> StoreError:
        place = f" ({path})" if path else ""
        tried = f" It was tried for {tried_s:.0f} s." if judgement.may_pass else ""
        advice = f" {judgement.advice}" if judgement.advice else ""
        text = clean(_text(error, judgement), self.url).rstrip(".")
        return StoreError(f"The storage {self} cannot be {what}{place}: {text}.{tried}{advice}")

    def _opened(self) -> Access:
        """Return the access of this process: what a fork has copied belongs to the process it was copied from."""
        opened = self._access  # without a lock: a fork could copy one that is held, and two accesses do no harm
        if opened is None or opened[0] != os.getpid():
            opened = self._access = os.getpid(), self._open()
            abandon_in_copies(self)
        return opened[1]

    def abandon(self) -> None:
        """Forget, in a forked copy of the process, what the original has opened, and never take it down."""
        if self._access is not None:
            never_free(self._access[1])
            self._access = None

    def _drop(self) -> None:
        self._access = None


def checked(path: str, *, may_be_empty: bool = False) -> str:
    """Return a path that cannot lead out of the storage.

    Raises:
        InvalidInputError: If it could, or if some storages could not keep it.
    """
    if path == "" and may_be_empty:
        return path
    if any(name in {"", ".", ".."} for name in path.split("/")) or not path.isprintable():
        raise InvalidInputError(
            f"The path {path!r} is refused: write a relative path of plain names, such as 'a/b.txt'."
        )
    return path


def clean(text: str, url: str) -> str:
    """Return the words of an error without what is secret in the address and in the environment."""
    text = _QUERY.sub(r"\1?…", without_credentials(text))
    secrets = {value for name, value in os.environ.items() if _SECRET_NAMES.search(name.upper()) and len(value) >= 6}
    if "@" in url:
        secrets.update(part for part in re.split(r"[:/@]", url.rpartition("@")[0]) if len(part) >= 4)
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "…")
    return text


def _harmless(error: Exception, url: str) -> Exception | None:
    """Return an error to be shown as the cause, or nothing if it would show a secret."""
    one: BaseException | None = error
    while one is not None:
        if clean(str(one), url) != str(one):
            return None
        one = one.__cause__ or one.__context__
    return error


def _text(error: Exception, judgement: Judgement) -> str:
    return " ".join((judgement.text or str(error)).split())[:500] or type(error).__name__


def _judge_opening(error: Exception) -> Judgement:
    return Judgement(isinstance(error, ConnectionError | TimeoutError))
