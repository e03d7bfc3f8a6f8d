"""Post an alarm as JSON to an address.

The address is the user's own choice, written where the monitor was asked for; nothing that was logged or learned can
change it. Redirects are not followed, so that a server cannot send the alarm, and a secret in its address, elsewhere.
"""

from __future__ import annotations

import http.client
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.kinds import read_path
from cargobike.monitoring.facts import Hooks
from cargobike.monitoring.hooks.secrets import filled

_TIMEOUT_S: Final = 10.0
_SPOKEN: Final = {"http", "https"}


def check_webhook(url: str) -> None:
    """Refuse an address that nothing can be posted to.

    Raises:
        InvalidInputError: If it is none.
    """
    read_path("webhook", url)
    parts = urlsplit(url.replace("${", "").replace("}", ""))
    if parts.scheme not in _SPOKEN or not parts.hostname:
        raise InvalidInputError(
            f"The webhook {url.partition('://')[0][:20]!r}… is no address that JSON can be posted to; write "
            "https://host/path. A secret in it is written as ${NAME}, and taken from the environment."
        )


def post(hooks: Hooks, message: dict[str, Any]) -> None:
    """Post an alarm.

    Raises:
        OSError: If it was not taken; the words hold nothing of the address but its host.
    """
    parts = urlsplit(filled(hooks.webhook))
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=_TIMEOUT_S, context=ssl.create_default_context()
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", path, msgspec.json.encode(message), {"Content-Type": "application/json"})
        status = connection.getresponse().status
    except http.client.HTTPException as error:
        raise OSError(f"{host} does not speak HTTP: {type(error).__name__}") from error
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise OSError(f"{host} answered with status {status}")
