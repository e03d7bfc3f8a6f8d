"""A server of a project in a thread of the test, on a port of its own, with or without TLS."""

from __future__ import annotations

import datetime
import ipaddress
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.access import Access
from cargobike.ui.web.app import create_app
from cargobike.ui.web.serving import bind
from cargobike.ui.web.state import ServerState

TOKEN = "a-token-for-tests-0123456789"


class Certificate(NamedTuple):
    """A certificate for 127.0.0.1 that signs itself, and its key."""

    file: Path
    key: Path


@contextmanager
def served(
    project: ProjectFolder, access: Access | None = None, certificate: Certificate | None = None
) -> Iterator[str]:
    """Serve a project while entered; yields the address."""
    state = ServerState.of(project, access or Access(token=TOKEN))
    config = uvicorn.Config(
        create_app(state),
        log_level="critical",
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=2,
        ssl_certfile=None if certificate is None else str(certificate.file),
        ssl_keyfile=None if certificate is None else str(certificate.key),
    )
    server = uvicorn.Server(config)
    sock = bind("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    give_up_at = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive(), "the server ended"
        assert time.monotonic() < give_up_at, "the server did not start within 30 s"
        time.sleep(0.01)
    try:
        yield f"{'http' if certificate is None else 'https'}://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        state.closing.set()
        server.should_exit = True
        thread.join(30)
        sock.close()
        assert not thread.is_alive(), "the server did not end within 30 s"


def make_certificate(folder: Path) -> Certificate:
    """Write a certificate for 127.0.0.1 that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cargobike test")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate = Certificate(folder / "server.pem", folder / "server.key")
    certificate.file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    certificate.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate
