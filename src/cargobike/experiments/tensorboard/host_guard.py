"""A layer around TensorBoard that answers only to the names of this server.

A page of another site can make its own name point at this machine, and then read what TensorBoard shows, as a page of
the same origin. But its requests carry that name, by which they are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cargobike.ui.web.access import Access

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_REFUSAL = (
    b"TensorBoard does not answer to this host name. Open the address that was printed, or start it with "
    b"cargobike tensorboard --allow-host NAME.\n"
)


def guarded(app: WsgiApp, access: Access) -> WsgiApp:
    """Return an application that passes on requests for the hosts that are allowed, and refuses all others."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if access.answers_to(environ.get("HTTP_HOST", "")):
            return app(environ, start_response)
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(_REFUSAL)))]
        start_response("421 Misdirected Request", headers)
        return [_REFUSAL]

    return answer
