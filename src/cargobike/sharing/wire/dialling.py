"""Connect to another member."""

from __future__ import annotations

from typing import Final

from cargobike.core.errors import AuthenticationError, ConnectionLostError, InvalidInputError
from cargobike.sharing.identity.keys import Identity
from cargobike.sharing.network.network import Network
from cargobike.sharing.wire.introducing import DIALECT, introduce_dialled
from cargobike.sharing.wire.member import Member
from cargobike.sharing.wire.messages import Greeting
from cargobike.training.wire.connection import HANDSHAKE_S, reach_far

DIAL_S: Final = 10.0


def dial(
    address: str, network: Network, identity: Identity, *, greeting: Greeting | None = None, timeout_s: float = DIAL_S
) -> Member:
    """Connect to a member of our network, and have both prove that they belong to it.

    Raises:
        AuthenticationError: If one of the two does not; says so without a word of the secret.
        OSError: If it cannot be reached, or does not answer in time.
    """
    try:
        channel = reach_far(check_address(address), network.key, timeout_s, DIALECT)
    except AuthenticationError as error:
        raise AuthenticationError(_words(address, network, error)) from error
    except OSError as error:
        if error.errno is None or error.strerror is None:
            raise
        raise ConnectionLostError(f"cannot be reached: {error.strerror.lower()}") from error
    try:
        channel.wait_in_kernel(HANDSHAKE_S)
        member = Member(channel, introduce_dialled(channel, network, identity))
        member.say(greeting or Greeting())
        member.hear_greeting()
    except BaseException:
        channel.close()
        raise
    return member


def check_address(address: str) -> str:
    """Return the address of a member.

    Raises:
        InvalidInputError: If it is not `host:port`.

    Example:
        >>> check_address("127.0.0.1:7777")
        '127.0.0.1:7777'
    """
    host, separator, port = address.rpartition(":")
    if not (separator and host and port.isdigit() and 0 < int(port) < 65536) or len(address) > 280:
        raise InvalidInputError(f"The address {address[:80]!r} was given; write host:port, such as 10.0.0.5:7777.")
    return address


def _words(address: str, network: Network, error: AuthenticationError) -> str:
    if "secret" in str(error):
        what = "another secret" if network.has_secret else "a secret, and no secret was given here"
        return (
            f"{address} belongs to another network, or the network {network.name!r} has {what} there. Give the secret "
            f"that its members share."
        )
    return f"{address}: {error}"


def is_gone(error: BaseException) -> bool:
    """Tell whether an error means that a member cannot be reached now, and may be later."""
    return isinstance(error, (OSError, ConnectionLostError)) and not isinstance(error, AuthenticationError)
