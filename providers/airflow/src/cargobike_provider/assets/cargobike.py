"""Assets: `cargobike://PROJECT/KIND/NAME`, where the project is named by the id of its connection.

DAGs are parsed without opening connections, so an address cannot hold the folder or URL of a project. What is there in
which version travels in the extra of each event.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import SplitResult, quote

from airflow.sdk import Asset

KINDS: Final = ("model", "deployment", "experiment", "group", "dataset", "view", "table", "pipeline", "notebook")
"""What can be an asset."""


def create_asset(
    *, kind: str, name: str, project: str = "cargobike_default", extra: dict[str, Any] | None = None
) -> Asset:
    """Return the asset of a thing in a project.

    Args:
        kind: What it is: one of `KINDS`.
        name: Its name, without a version.
        project: The id of the project's connection.
        extra: More about it.
    """
    return Asset(uri=f"cargobike://{project}/{kind}/{quote(name, safe='')}", extra=extra or {})


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Return an address in its one form.

    Raises:
        ValueError: If it is not `cargobike://PROJECT/KIND/NAME`.
    """
    parts = [part for part in uri.path.split("/") if part]
    if not uri.netloc or len(parts) != 2 or parts[0].lower() not in KINDS or uri.query or uri.fragment:
        raise ValueError(
            f"{uri.geturl()!r} is no address of a thing of Cargobike; write cargobike://CONNECTION/KIND/NAME, where "
            f"KIND is one of {', '.join(KINDS)}."
        )
    return uri._replace(scheme="cargobike", path=f"/{parts[0].lower()}/{parts[1]}")


def is_fixed(name: Any) -> bool:
    """Tell whether a name is known when a DAG is parsed: a text without a template."""
    return isinstance(name, str) and bool(name) and not re.search(r"\{\{|\{%", name)
