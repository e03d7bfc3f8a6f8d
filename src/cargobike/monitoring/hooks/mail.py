"""Send an alarm as a mail."""

from __future__ import annotations

import smtplib
import socket
import ssl
from email.message import EmailMessage
from typing import Any, Final

import msgspec

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError
from cargobike.monitoring.facts import Hooks

_TIMEOUT_S: Final = 15.0
_PORT: Final = 25
_TLS_PORT: Final = 465


def check_mail(email: str, smtp: str) -> None:
    """Refuse what is no address, or no server.

    Raises:
        InvalidInputError: If one is none.
    """
    name, at, host = email.rpartition("@")
    if not at or not name or not host or any(one.isspace() or one in ",;<>" for one in email):
        raise InvalidInputError(f"email={email!r} is no address; write one such as 'team@example.org'.")
    if smtp and not smtp.rpartition(":")[2].isdigit() and ":" in smtp:
        raise InvalidInputError(f"smtp={smtp!r} is no server; write 'host:port', such as 'mail.example.org:587'.")


def send_mail(hooks: Hooks, message: dict[str, Any]) -> None:
    """Send a mail.

    Raises:
        OSError: If the server did not take it.
    """
    host, _, port = hooks.smtp.partition(":")
    user, password = settings.smtp_credentials()
    number = int(port) if port else _PORT
    alarm = message["alarm"]
    mail = EmailMessage()
    mail["Subject"] = " ".join(f"[cargobike] {message['monitor']}: {alarm['text']}".split())[:200]
    mail["From"] = user or f"cargobike@{socket.gethostname() or 'localhost'}"
    mail["To"] = hooks.email
    moved = "\n".join(
        f"- {one['feature']}: {one['statistic']} {one['size']:.4g}; {one.get('reference', '')} -> {one.get('now', '')}"
        for one in alarm.get("moved", ())
    )
    advice = f"cargobike monitor show {message['monitor']}\ncargobike monitor ack {message['monitor']} {alarm['id']}"
    mail.set_content(f"{alarm['text']}\n\n{moved}\n\n{advice}\n")
    mail.add_attachment(msgspec.json.encode(message), maintype="application", subtype="json", filename="alarm.json")
    is_encrypted = number == _TLS_PORT
    opened = smtplib.SMTP_SSL if is_encrypted else smtplib.SMTP
    with opened(host or "localhost", number, timeout=_TIMEOUT_S) as server:
        server.ehlo()
        if not is_encrypted and server.has_extn("starttls"):
            server.starttls(context=ssl.create_default_context())
            is_encrypted = True
        if user and password:
            if not is_encrypted:
                raise OSError(f"{host} does not encrypt; the password is not sent")
            server.login(user, password)
        server.send_message(mail)
