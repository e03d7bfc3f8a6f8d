"""Asking an endpoint for predictions over HTTP, on connections that are kept."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from cargobike.core.errors import DeploymentError, InvalidInputError, PredictionError, WaitError

_PAUSE_S: Final = 0.05
_INPUT: Final = {400, 413, 415, 422}
_NOT_NOW: Final = {429, 503}


class Client:
    """Sends rows to an endpoint; may be used from several threads, each of which has a connection of its own.

    A connection that is refused or closed before an answer came is tried again until the deadline: a front that was
    lost is back within a second. So is an endpoint that has too much to do, after the pause that it asks for.

    Args:
        url: The endpoint.
        token: What it asks for, if it does.
        certificate: The file of the certificate to trust, for `https`.
    """

    def __init__(self, url: str, token: str = "", certificate: str = "") -> None:
        self.url = url
        self._token = token
        self._certificate = certificate
        self._local = threading.local()
        self._opened: list[http.client.HTTPConnection] = []

    def predict(self, rows: Any, timeout_s: float) -> Any:
        """Return the answer to a row, or the list of answers to a list of rows.

        Raises:
            InvalidInputError: If rows do not fit the model's signature; says which field.
            PredictionError: If the model raised an error.
            WaitError: If there was no answer in time.
            DeploymentError: If the endpoint does not let us.
        """
        body = msgspec.json.encode(rows, enc_hook=_plain)
        give_up_at = time.monotonic() + timeout_s
        problem = "it did not answer"
        while (left_s := give_up_at - time.monotonic()) > 0:
            try:
                status, pause_s, data = self._post(body, left_s)
            except TimeoutError:
                break
            except (OSError, http.client.HTTPException) as error:
                problem = str(error) or type(error).__name__
                time.sleep(_PAUSE_S)
                continue
            if status < 300:
                return msgspec.json.decode(data)
            problem = _message(data)
            if status not in _NOT_NOW:
                raise _error(status, problem, self.url)
            time.sleep(min(max(pause_s, _PAUSE_S), max(0.0, give_up_at - time.monotonic())))
        raise WaitError(f"{self.url} has not answered within {timeout_s:g} s: {problem}")

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def __del__(self) -> None:
        for connection in self._opened:
            connection.close()

    def _post(self, body: bytes, left_s: float) -> tuple[int, float, bytes]:
        connection = self._connection(left_s)
        headers = {"Content-Type": "application/json", "X-Deadline-S": f"{left_s:.3f}"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request("POST", "/predict", body, headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        pause = response.headers.get("Retry-After", "0")
        return response.status, float(pause) if pause.replace(".", "", 1).isdigit() else 0.0, data

    def _connection(self, left_s: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            parts = urlsplit(self.url)
            assert parts.hostname is not None
            if parts.scheme == "https":
                context = ssl.create_default_context(cafile=self._certificate or None)
                connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=context)
            else:
                connection = http.client.HTTPConnection(parts.hostname, parts.port)
            self._local.connection = connection
            self._opened = [one for one in self._opened if one.sock is not None]
            self._opened.append(connection)
        connection.timeout = left_s
        if connection.sock is not None:
            connection.sock.settimeout(left_s)
        return connection


def _error(status: int, message: str, url: str) -> Exception:
    if status in _INPUT:
        return InvalidInputError(message)
    if status in {401, 403}:
        return DeploymentError(
            f"{url} does not let us in: {message}. Give the token that it was deployed with: token=…"
        )
    if status == 504:
        return WaitError(message)
    return PredictionError(message) if status in {500, 502} else DeploymentError(f"{url} answered {status}: {message}")


def _message(data: bytes) -> str:
    try:
        answer = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data[:500].decode(errors="replace")
    if isinstance(answer, dict):
        return str(answer.get("error") or answer.get("detail") or answer)
    return str(answer)


def _plain(value: Any) -> Any:
    """Return what NumPy, torch and their like call a number or an array as Python's own."""
    for name in ("tolist", "item"):
        if hasattr(value, name):
            return getattr(value, name)()
    raise InvalidInputError(
        f"A row holds {type(value).__name__}, which cannot be sent: give numbers, texts, lists, dicts."
    )
