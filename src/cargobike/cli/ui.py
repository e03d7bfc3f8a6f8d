"""`cargobike ui`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from cargobike.cli.completing import complete_things
from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, MissingLibraryError, NotFoundError
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products
from cargobike.store.files import project
from cargobike.ui.web.roles import Role
from cargobike.ui.web.tokens import TokenBook


def ui(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Show this one: id, start or end of one, name, or `last`.",
            autocompletion=complete_things,
        ),
    ] = "",
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; any but loopback needs a token.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port. [default: 8520, or a free one if it is taken]")
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open a browser.")] = False,
    with_token: Annotated[bool, typer.Option("--token", help="Ask for a token on loopback, too.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show everything, and change nothing.")] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Also answer to this host name; may be repeated.")
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Encrypt with this certificate, in PEM form, with those that signed it."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its key. [default: in the file of the certificate]")
    ] = None,
) -> None:
    """Show experiments in a browser, until Ctrl-C."""
    try:
        from cargobike.ui.web.access import access_for, new_token  # noqa: PLC0415 - an extra
        from cargobike.ui.web.serving import Certificate, bind, check_certificate, serve  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingLibraryError(
            f'the dashboard needs {error.name}, which is not installed; install it with: pip install "cargobike[ui]"',
            name=error.name,
        ) from error
    if key is not None and certificate is None:
        raise InvalidInputError("--key was given without --certificate, the certificate that it belongs to.")
    proof = None if certificate is None else Certificate(certificate, key or certificate)
    if proof is not None:
        check_certificate(proof)
    page = _find_page(experiment) if experiment else "/"
    folder = project.current()
    token = settings.take_ui_token() or (new_token() if with_token else None)
    if token is not None and len(token) < 16:
        raise InvalidInputError(f"The token in {settings.UI_TOKEN} is too easy to guess; give at least 16 characters.")
    most = Role.READ if read_only else Role.ADMINISTER
    access = access_for(host, names=allow_host or (), token=token, most=most, book=TokenBook(folder))
    sock = bind(host, port)
    name = f"[{host}]" if ":" in host else host
    address = f"{'http' if proof is None else 'https'}://{name}:{sock.getsockname()[1]}"
    # The part after # is never sent to a server, and the page removes it from the browser's history.
    entry = f"{address}/login#{access.token}" if access.token else f"{address}{page}"
    typer.echo(f"Cargobike's dashboard of {folder.root} is at\n\n  {entry}\n")
    typer.echo("Ctrl-C ends it.", err=True)
    if open_browser:
        webbrowser.open(entry)
    serve(folder, access, sock, proof)


def _find_page(text: str) -> str:
    """Return the address of the page for a name or id; the first product that knows it counts."""
    refusal: NotFoundError | None = None
    for product in products():
        if not product.find_page:
            continue
        try:
            return str(load(product.find_page)(text))
        except NotFoundError as error:
            refusal = refusal or error
    raise refusal or NotFoundError(f"There is no page of {text!r}.")
