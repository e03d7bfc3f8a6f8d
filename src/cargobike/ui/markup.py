"""HTML made by hand, safely: all text is escaped, and data can be put into a page's script."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping

_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def text(value: object) -> str:
    """Return anything as HTML text: escaped, and without terminal commands."""
    plain = _CONTROL.sub("", _TERMINAL.sub("", str(value)))
    return html.escape(plain.encode("utf-8", "replace").decode("utf-8"))


def fact_list(facts: Mapping[str, object]) -> str:
    """Return names and their values as a list."""
    return f"<dl>{''.join(f'<dt>{text(name)}</dt><dd>{text(value)}</dd>' for name, value in facts.items())}</dl>"


def data_block(name: str, encoded: str) -> str:
    """Return JSON as an element that a script can read and a browser does not run."""
    safe = encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{name}">{safe}</script>'


def as_json(value: object) -> str:
    """Encode plain data; ASCII only, so that no character can end a line or a script."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def script(code: str) -> str:
    """Return a script element with its code in the page itself."""
    return f"<script>{_inline(code)}</script>"


def security_policy(codes: list[str]) -> str:
    """Return a policy by which the page runs these scripts and no other, and loads nothing from anywhere.

    Plotly compiles its shaders' commands while it runs, hence `unsafe-eval`.
    """
    hashes = " ".join(f"'sha256-{_digest(code)}'" for code in codes)
    policy = (
        f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
        "font-src data:; base-uri 'none'; form-action 'none'"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'


def _inline(code: str) -> str:
    return code.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(code: str) -> str:
    return base64.b64encode(hashlib.sha256(_inline(code).encode("utf-8")).digest()).decode("ascii")
