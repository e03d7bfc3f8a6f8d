"""A page to try a model in a browser: one file, no other server, nothing that a policy could not name."""

from __future__ import annotations

import functools
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Final

from cargobike.serving.front.web.answering import Reply

_FILE: Final = Path(__file__).parent / "static" / "try.html"


@functools.cache
def try_page() -> Reply:
    """Return the page; it holds nothing of the deployment, and asks for an example with the caller's token."""
    page = _FILE.read_bytes()
    policy = (
        f"default-src 'none'; script-src {_hash_of(page, b'script')}; style-src {_hash_of(page, b'style')}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        b"content-security-policy": policy.encode(),
        b"x-content-type-options": b"nosniff",
        b"x-frame-options": b"DENY",
        b"referrer-policy": b"no-referrer",
        b"cross-origin-opener-policy": b"same-origin",
        b"cache-control": b"no-store",
    }
    return Reply(200, page, b"text/html; charset=utf-8", tuple(headers.items()))


def _hash_of(page: bytes, tag: bytes) -> str:
    """Return the one script, or the one sheet, that a policy allows: the hash of what stands in the page."""
    [content] = re.findall(rb"<" + tag + rb">(.*?)</" + tag + rb">", page, re.DOTALL)
    return f"'sha256-{b64encode(sha256(content).digest()).decode()}'"
