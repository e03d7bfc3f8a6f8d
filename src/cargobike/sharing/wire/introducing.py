"""Both ends of a channel show which key they have: they sign what only this one connection has.

A proof has a fixed length, and nothing is decoded before it was checked. The end that dialled goes first, so that one
who is not on the list learns nothing about the other, not even its key.
"""

from __future__ import annotations

from typing import Final

from cargobike.core.errors import AuthenticationError
from cargobike.sharing.identity.keys import Identity, is_signed, read_key, short, write_key
from cargobike.sharing.network.network import Network
from cargobike.training.wire.channel import Channel
from cargobike.training.wire.handshake import Dialect

DIALECT: Final = Dialect(b"cargobike sh", 1, "the protocol of sharing")
_DOMAIN: Final = b"cargobike share member 1\0"
_PROOF_BYTES: Final = 32 + 64
_DIALLED, _LISTENED = b"dialled\0", b"listened\0"


def introduce_dialled(channel: Channel, network: Network, identity: Identity) -> str:
    """Show our key to the member that we dialled, and return its key.

    Raises:
        AuthenticationError: If it does not belong to the network, or says that we do not.
    """
    channel.send(_proof(channel, network, identity, _DIALLED))
    answer, _ = channel.receive_header()
    if not answer:
        raise AuthenticationError(
            f"{channel.peer} does not take the key {short(identity.publisher)} as a member of {network.name!r}: it is "
            f"not on its list of keys, or blocked there"
        )
    return _check(answer, channel, network, _LISTENED)


def introduce_listened(channel: Channel, network: Network, identity: Identity, blocked: frozenset[str]) -> str:
    """Return the key of a member that dialled us, and show it ours.

    Raises:
        AuthenticationError: If it does not belong to the network, or is blocked.
    """
    proof, _ = channel.receive_header()
    try:
        publisher = _check(proof, channel, network, _DIALLED)
        if publisher in blocked:
            raise AuthenticationError(f"the key {short(publisher)} of {channel.peer} is blocked")
    except AuthenticationError:
        channel.send(b"")
        raise
    channel.send(_proof(channel, network, identity, _LISTENED))
    return publisher


def _proof(channel: Channel, network: Network, identity: Identity, end: bytes) -> bytes:
    return read_key(identity.publisher) + identity.sign(_signed(channel, network, end))


def _signed(channel: Channel, network: Network, end: bytes) -> bytes:
    return _DOMAIN + end + network.name.encode() + b"\0" + channel.binding


def _check(proof: bytes, channel: Channel, network: Network, end: bytes) -> str:
    if len(proof) != _PROOF_BYTES:
        raise AuthenticationError(f"{channel.peer} shows no key of a member")
    publisher = write_key(proof[:32])
    if not is_signed(publisher, _signed(channel, network, end), proof[32:]):
        raise AuthenticationError(f"{channel.peer} does not have the key that it shows")
    if not network.admits(publisher):
        raise AuthenticationError(
            f"the key {short(publisher)} of {channel.peer} is not on the list of {network.name!r}"
        )
    return publisher
