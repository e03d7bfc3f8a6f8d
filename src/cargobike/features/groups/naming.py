"""What groups are called, and where they lie in a project: all that is to be known without opening one."""

from __future__ import annotations

import re
from typing import Final

from cargobike.store.files.storage import Storage

FOLDER: Final = "features"
NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_FILE: Final = re.compile(
    rf"{FOLDER}/(?P<name>{NAME.pattern})\.v(?P<version>[1-9]\d{{0,5}})\.(?P<revision>[1-9]\d{{0,5}})\.json"
)


def folder_of_rows(name: str, version: int) -> str:
    """Return where the rows of a group lie in its project."""
    return f"{FOLDER}/{name}/v{version}"


def find_definitions(storage: Storage) -> dict[tuple[str, int], tuple[int, str, str]]:
    """Return the newest revision of each version of each group, with the path and the token of its file."""
    newest: dict[tuple[str, int], tuple[int, str, str]] = {}
    for entry in storage.list(FOLDER):
        match = _FILE.fullmatch(entry.path)
        if match is not None:
            group, revision = (match["name"], int(match["version"])), int(match["revision"])
            if revision > newest.get(group, (0, "", ""))[0]:
                newest[group] = revision, entry.path, entry.token
    return newest
