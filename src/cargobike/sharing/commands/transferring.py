"""`cargobike share get | serve | rendezvous | status | limit | pause | resume | stop`: what moves."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from cargobike.cli.printing import age, cell, console, print_json, print_table, table
from cargobike.core.errors import InvalidInputError
from cargobike.sharing import front
from cargobike.sharing.commands.options import Json, MembersFile, Network, Peers, Publication, SecretFile
from cargobike.sharing.daemon.control import ask_daemon
from cargobike.sharing.daemon.messages import AskStatus, Pause, Request, Resume, SetLimits, Status, Stop
from cargobike.sharing.daemon.serving import Daemon
from cargobike.sharing.daemon.systemd import unit
from cargobike.sharing.getting.front import get as get_publication
from cargobike.sharing.identity.keys import short
from cargobike.sharing.network.network import Network as NetworkOpened
from cargobike.sharing.network.network import open_network
from cargobike.sharing.publishing.visible import size_words
from cargobike.store.files import project


def get(
    publication: Publication,
    *,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FOLDER", help="A folder, s3://… or hdfs://…; by default the project keeps it."),
    ] = "",
    web_seeds: Annotated[
        bool, typer.Option("--web-seeds", help="Ask servers that the publisher names, too, even if it is not trusted.")
    ] = False,
    network: Network = "",
    peers: Peers = None,
    secret_file: SecretFile = None,
    members: MembersFile = None,
    in_order: Annotated[bool, typer.Option("--in-order", help="Have the beginning come first.")] = False,
    timeout_s: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=1.0, help="For how long nothing may come.")
    ] = 600.0,
    as_json: Json = False,
) -> None:
    """Get a publication from all members that have it, verified piece by piece; goes on where it was interrupted."""
    name = front.choose_network(network)
    opened = open_network(project.prepare(), name, secret_file=secret_file, members_file=members)
    began = time.monotonic()
    arrival = get_publication(
        publication,
        network=opened,
        to=to or None,
        web_seeds=True if web_seeds else None,
        peers=peers or (),
        in_order=in_order,
        timeout_s=timeout_s,
        quiet=as_json,
    )
    progress = arrival.progress
    if as_json:
        print_json(
            {
                "publication": progress.reference,
                "folder": str(arrival.place),
                "size": progress.size,
                "size_fetched": progress.size_fetched,
                "size_found": progress.size_found,
                "dropped": list(progress.dropped),
                "seconds": round(time.monotonic() - began, 3),
            }
        )
        return
    console().print(
        cell(
            f"{progress.reference} is in {arrival.place}: {size_words(progress.size)}, of which "
            f"{size_words(progress.size_fetched)} were sent and {size_words(progress.size_found)} were here already."
        )
    )
    for source in progress.dropped:
        console().print(cell(f"Not asked any more: {source}", "yellow"))


def serve(
    *,
    network: Network = "",
    host: Annotated[str, typer.Option("--host", help="The address to listen at; other hosts need another one.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")] = 0,
    peers: Peers = None,
    secret_file: SecretFile = None,
    members: MembersFile = None,
    announce: Annotated[bool, typer.Option("--announce", help="Find members on the same link, and be found.")] = False,
    relay: Annotated[
        bool, typer.Option("--relay/--no-relay", help="Pass on pieces of members that others cannot dial.")
    ] = True,
    systemd: Annotated[bool, typer.Option("--systemd", help="Print a unit for systemd instead.")] = False,
) -> None:
    """Give what is here to other members, and learn what they publish, until it is interrupted."""
    name = front.choose_network(network)
    if systemd:
        arguments = ["--host", host, "--port", str(port)]
        arguments += [*(["--announce"] if announce else []), *([] if relay else ["--no-relay"])]
        arguments += [word for peer in peers or () for word in ("--peer", peer)]
        typer.echo(unit(project.prepare().root, name, arguments), nl=False)
        return
    opened = open_network(project.prepare(), name, secret_file=secret_file, members_file=members)
    _run(opened, host=host, port=port, peers=peers or (), announces=announce, relays=relay)


def rendezvous(
    *,
    network: Network = "",
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")] = 0,
    peers: Peers = None,
    secret_file: SecretFile = None,
    members: MembersFile = None,
) -> None:
    """Introduce members to each other and pass on records, but no content; can be lost without harm."""
    name = front.choose_network(network)
    opened = open_network(project.prepare(), name, secret_file=secret_file, members_file=members)
    _run(opened, host=host, port=port, peers=peers or (), gives=False)


def status(network: Network = "", as_json: Json = False) -> None:
    """Show what the daemon gives to whom, how fast, and which members it knows."""
    answer = _ask(network, AskStatus())
    assert isinstance(answer, Status)
    if as_json:
        print_json({name: getattr(answer, name) for name in answer.__struct_fields__} | {"is_running": True})
        return
    out = console()
    state = "paused" if answer.is_paused else "giving"
    out.print(cell(f"{answer.network} at {answer.address}, process {answer.pid}, {state}, started {age(answer.since)}"))
    out.print(cell(f"{answer.records} publications are known, {len(answer.shared)} are here."))
    limits = {"send": answer.limits.send, "receive": answer.limits.receive, **(answer.limits.peers or {})}
    said = [f"{name} {rate}" for name, rate in limits.items() if rate] + list(answer.limits.hours or ())
    out.print(cell(f"Limits: {', '.join(said) or 'none'}."))
    if answer.lenders:
        keys = ", ".join(map(short, answer.lenders))
        out.print(cell(f"Passes on what members have that cannot be dialled: {keys}."))
    if answer.lent_to:
        out.print(cell(f"Asked over our own calls, since they cannot dial us: {', '.join(answer.lent_to)}."))
    if answer.peers:
        made = table("MEMBER", "ADDRESS", "GIVEN", "RATE", "STATE", right=("GIVEN", "RATE"))
        given = {one.publisher: one.size for one in answer.given}
        paths = {path.peer: path for path in answer.paths}
        for peer in answer.peers:
            path = paths.get(peer.publisher)
            made.add_row(
                cell(short(peer.publisher) or "unknown"),
                cell(peer.address),
                cell(size_words(given.get(peer.publisher, 0))),
                cell(f"{size_words(int(path.delivered_rate))}/s" if path else ""),
                cell(peer.problem or (path.phase if path else "")),
            )
        print_table(made)


def limit(
    *,
    network: Network = "",
    send: Annotated[
        str | None, typer.Option("--send", metavar="RATE", help="Such as 20MB/s; none for no limit.")
    ] = None,
    receive: Annotated[
        str | None, typer.Option("--receive", metavar="RATE", help="The same for what comes in.")
    ] = None,
    peer: Annotated[
        list[str] | None, typer.Option("--member", metavar="KEY=RATE", help="For one member; may be repeated.")
    ] = None,
    hours: Annotated[
        list[str] | None,
        typer.Option("--hours", metavar="'mon-fri 08:00-18:00 send=2MB/s'", help="By the hour; may be repeated."),
    ] = None,
    gives_way: Annotated[
        bool | None, typer.Option("--give-way/--no-give-way", help="Make room for other traffic; on by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Limit how fast the daemon sends and receives: in all, for one member, by the hour; kept for the next start."""
    if send is None and receive is None and not peer and not hours and gives_way is None:
        raise typer.BadParameter("give at least one of --send, --receive, --member, --hours, --give-way")
    pairs = dict(_pair(text) for text in peer or ())
    wanted = SetLimits(
        send=send,
        receive=receive,
        peers=pairs or None,
        hours=None if hours is None else tuple(hours),
        gives_way=gives_way,
    )
    _obeyed(network, wanted, "The limits are set.", as_json=as_json)


def pause(network: Network = "", as_json: Json = False) -> None:
    """Give no pieces until `cargobike share resume`."""
    _obeyed(network, Pause(), "Paused.", as_json=as_json)


def resume(network: Network = "", as_json: Json = False) -> None:
    """Give pieces again."""
    _obeyed(network, Resume(), "Giving again.", as_json=as_json)


def stop(network: Network = "", as_json: Json = False) -> None:
    """End the daemon."""
    _obeyed(network, Stop(), "The daemon ends.", as_json=as_json)


def _run(network: NetworkOpened, **options: Any) -> None:
    with Daemon(project.prepare(), network, **options) as daemon:
        typer.echo(f"Serving {network.name} at {daemon.address}. Others: --peer {daemon.address}. Ctrl-C ends it.")
        daemon.run()


def _ask(network: str, request: Request) -> object:
    return ask_daemon(project.current(), front.choose_network(network), request)


def _obeyed(network: str, request: Request, words: str, *, as_json: bool) -> None:
    _ask(network, request)
    if as_json:
        print_json({"done": words})
    else:
        typer.echo(words)


def _pair(text: str) -> tuple[str, str]:
    key, equals, rate = text.rpartition("=")
    if not equals or not key:
        raise InvalidInputError(f"{text!r} was given; write the member's key and a rate: ed25519:…=5MB/s.")
    return key, rate
