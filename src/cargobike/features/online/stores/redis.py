"""Newest rows in a Redis server that several hosts share.

The rows of a group are one hash, in which its state lies too: one cannot be lost without the other. A change is
collected under a name of its own, which expires if its writer dies, and one script then makes it visible, unless
another writer was first. So nothing has to be locked, and nothing has to be unlocked after a crash. No script keeps the
server busy for longer than it may let look-ups wait.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from cargobike.core import settings
from cargobike.core.errors import StoreError
from cargobike.features.online.packing import time_of
from cargobike.features.online.stores.keys import is_number, is_text
from cargobike.features.online.stores.store import TIMEOUT_S, Overtaken, State, decode_state, encode_state

ANSWER_S: Final = 5.0
"""How long a server may take to answer a look-up."""
_STAGED_S: Final = 3600
"""How long what a writer has collected outlives its last sign of life."""
_AT_ONCE: Final = 2000
_READ_AT_ONCE: Final = 10_000
_FILLED_AT_ONCE: Final = 2000
_MERGED: Final = 20_000
"""Changes of more rows are completed by all others, little by little, and renamed: the server answers meanwhile."""
_STATE: Final = b"state"

_COMMIT: Final = """
local live, staged, gone, trash = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local field, before, after, whole = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if (redis.call('HGET', live, field) or '') ~= before then return 'overtaken' end
if redis.call('HLEN', staged) ~= tonumber(ARGV[5]) or redis.call('SCARD', gone) ~= tonumber(ARGV[6]) then
  return 'expired'
end
if whole == '1' then
  redis.call('HSET', staged, field, after)
  if redis.call('EXISTS', live) == 1 then
    redis.call('RENAME', live, trash)
    redis.call('UNLINK', trash)
  end
  redis.call('RENAME', staged, live)
  redis.call('PERSIST', live)
else
  local cursor = '0'
  repeat
    local some = redis.call('SSCAN', gone, cursor, 'COUNT', 1000)
    cursor = some[1]
    for first = 1, #some[2], 4000 do
      redis.call('HDEL', live, unpack(some[2], first, math.min(first + 3999, #some[2])))
    end
  until cursor == '0'
  repeat
    local some = redis.call('HSCAN', staged, cursor, 'COUNT', 1000)
    cursor = some[1]
    for first = 1, #some[2], 4000 do
      redis.call('HSET', live, unpack(some[2], first, math.min(first + 3999, #some[2])))
    end
  until cursor == '0'
  redis.call('HSET', live, field, after)
end
redis.call('UNLINK', staged, gone)
return 'done'
"""

_FILL: Final = """
local live, staged, gone = KEYS[1], KEYS[2], KEYS[3]
if (redis.call('HGET', live, ARGV[1]) or '') ~= ARGV[2] then return {'overtaken', 0} end
local some = redis.call('HSCAN', live, ARGV[3], 'COUNT', ARGV[4])
local added = 0
for place = 1, #some[2], 2 do
  local field = some[2][place]
  if field ~= ARGV[1] and redis.call('SISMEMBER', gone, field) == 0 then
    added = added + redis.call('HSETNX', staged, field, some[2][place + 1])
  end
end
redis.call('EXPIRE', staged, ARGV[5])
redis.call('EXPIRE', gone, ARGV[5])
return {some[1], added}
"""


class RedisStore:
    """Keeps the newest rows of a group in a Redis server.

    Args:
        address: Where the server is: `redis://host:6379/0`, `rediss://…`, `unix:///path`; without credentials, which
            the environment has.
        frame: What tells this version of this group of this project from all others on the server.
    """

    def __init__(self, address: str, frame: str) -> None:
        self.address = address
        self.name = f"cargobike:{{{frame}}}:rows"

    def reader(self) -> RedisReader:
        """Connect for look-ups in this thread."""
        return RedisReader(_Client(self.address, ANSWER_S), self.name)

    @contextmanager
    def writing(self, key: Sequence[str]) -> Iterator[RedisWriter]:
        """Change what the server holds."""
        client = _Client(self.address, TIMEOUT_S)
        try:
            writer = RedisWriter(client, self.name, key)
            try:
                yield writer
                writer.commit()
            finally:
                writer.sweep()
        finally:
            client.close()

    def drop(self) -> None:
        """Forget all rows."""
        client = _Client(self.address, ANSWER_S)
        try:
            client("UNLINK", self.name)
        finally:
            client.close()


class RedisReader:
    """Finds packed rows on a server.

    Args:
        client: A connection to it.
        name: The hash of the group.
    """

    def __init__(self, client: _Client, name: str) -> None:
        self._client = client
        self._name = name
        state = self.state()
        self._kinds = state.key if state is not None else ()

    def get(self, key: Any) -> bytes | None:
        """Return the row of a key, `None` if there is none."""
        row: bytes | None = self._client("HGET", self._name, encode_key(key, self._kinds))
        if row is None:
            self._check()
        return row

    def get_all(self, keys: Sequence[Any]) -> dict[Any, bytes]:
        """Return the rows of those keys that have one."""
        wanted = [key for key in dict.fromkeys(keys) if key is not None]
        rows: dict[Any, bytes] = {}
        for start in range(0, len(wanted), _READ_AT_ONCE):
            some = wanted[start : start + _READ_AT_ONCE]
            fields = [encode_key(key, self._kinds) for key in some]
            values = self._client("HMGET", self._name, *fields)
            rows.update((key, row) for key, row in zip(some, values, strict=True) if row is not None)
        if len(rows) < len(wanted):
            self._check()
        return rows

    def state(self) -> State | None:
        """Return what the server holds of the group."""
        return decode_state(self._client("HGET", self._name, _STATE))

    def count(self) -> int:
        """Return how many keys have a row."""
        return max(0, int(self._client("HLEN", self._name)) - 1)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _check(self) -> None:
        """Refuse to call a key missing if the whole group is.

        Raises:
            StoreError: If the server has lost it: it was restarted without its data, or short of memory.
        """
        if not self._client("HEXISTS", self._name, _STATE):
            raise StoreError(
                f"The Redis server at {self._client.address} has no rows of this group (any more): it was never "
                "materialized there, or the server has lost or evicted them. Call group.materialize()."
            )


class RedisWriter:
    """Collects a change under a name of its own.

    Args:
        client: A connection to the server.
        name: The hash of the group.
        key: Types of the key.
    """

    def __init__(self, client: _Client, name: str, key: Sequence[str]) -> None:
        self._client = client
        self._name = name
        self._kinds = tuple(key)
        token = secrets.token_hex(8)
        self._staged, self._gone, self._trash = (f"{name}:{what}:{token}" for what in ("staged", "gone", "trash"))
        self._before: bytes = client("HGET", name, _STATE) or b""
        self._after = b""
        self._is_whole = False
        self._written = self._removed = 0

    def state(self) -> State | None:
        """Return what the server holds before the change."""
        return decode_state(self._before or None)

    def clear(self) -> None:
        """Forget all rows, when the change becomes visible."""
        self._is_whole = True

    def put(self, keys: Sequence[Any], times: Sequence[int], rows: Sequence[bytes], *, if_newer: bool = False) -> None:
        """Write rows."""
        for start in range(0, len(keys), _AT_ONCE):
            fields = [encode_key(key, self._kinds) for key in keys[start : start + _AT_ONCE]]
            items = zip(fields, rows[start : start + _AT_ONCE], strict=True)
            if if_newer:
                old = self._client("HMGET", self._name, *fields)
                pairs = zip(items, times[start : start + _AT_ONCE], old, strict=True)
                given = [part for item, at, row in pairs if row is None or time_of(row) <= at for part in item]
            else:
                given = [part for item in items for part in item]
            if given:
                self._client("HSET", self._staged, *given)
                self._client("EXPIRE", self._staged, _STAGED_S)
                self._written += len(given) // 2

    def remove(self, keys: Sequence[Any]) -> None:
        """Forget the rows of keys."""
        for start in range(0, len(keys), _AT_ONCE):
            fields = [encode_key(key, self._kinds) for key in keys[start : start + _AT_ONCE]]
            self._client("SADD", self._gone, *fields)
            self._client("EXPIRE", self._gone, _STAGED_S)
            self._removed += len(fields)

    def finish(self, state: State) -> None:
        """Say what the server holds after the change."""
        self._after = encode_state(state)

    def commit(self) -> None:
        """Make the change visible, if `finish` was called.

        Raises:
            Overtaken: If another writer was first.
            StoreError: If what was collected has expired.
        """
        if not self._after:
            return
        if not self._is_whole and self._written + self._removed > _MERGED:
            self._complete()
        names = (self._name, self._staged, self._gone, self._trash)
        given = (_STATE, self._before, self._after, int(self._is_whole), self._written, self._removed)
        answer = self._client("EVAL", _COMMIT, len(names), *names, *given)
        if answer == b"overtaken":
            raise Overtaken
        if answer != b"done":
            raise StoreError(
                f"What was collected on the Redis server at {self._client.address} is gone: it was kept for an "
                "hour, or the server was restarted. Nothing was changed; call group.materialize() again."
            )

    def _complete(self) -> None:
        """Add all rows that stay as they are to those that change.

        Raises:
            Overtaken: If another writer was first.
        """
        cursor: bytes = b"0"
        while True:
            names = (self._name, self._staged, self._gone)
            given = (_STATE, self._before, cursor, _FILLED_AT_ONCE, _STAGED_S)
            cursor, added = self._client("EVAL", _FILL, len(names), *names, *given)
            if cursor == b"overtaken":
                raise Overtaken
            self._written += added
            if cursor == b"0":
                break
        self._is_whole = True

    def sweep(self) -> None:
        """Delete what was collected and did not become visible; if that fails, it expires."""
        try:
            self._client("UNLINK", self._staged, self._gone)
        except StoreError:
            return


class _Client:
    """A connection to a server, whose errors say which server it is and never with which password.

    Args:
        address: Where the server is, without credentials.
        answer_s: How long it may take to answer.
    """

    def __init__(self, address: str, answer_s: float) -> None:
        self.address = address
        self._answer_s = answer_s
        user, password = settings.redis_credentials()
        try:
            self._redis: Any = redis.Redis.from_url(
                address,
                username=user or None,
                password=password or None,
                socket_connect_timeout=ANSWER_S,
                socket_timeout=answer_s,
                retry=Retry(NoBackoff(), 1),  # a connection that the server has closed meanwhile is made anew, once
                protocol=2,
            )
        except (ValueError, redis.RedisError) as error:
            raise StoreError(f"The Redis server at {address} cannot be used: {error}.") from None

    def __call__(self, *command: Any) -> Any:
        """Send a command, and return the answer.

        Raises:
            StoreError: If the server does not answer, or refuses.
        """
        try:
            return self._redis.execute_command(*command)
        except redis.AuthenticationError as error:
            raise StoreError(
                f"The Redis server at {self.address} refused the credentials: {error}. Set {settings.REDIS_PASSWORD}, "
                f"and {settings.REDIS_USER} unless it is the default one."
            ) from None
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            raise StoreError(
                f"The Redis server at {self.address} does not answer within {self._answer_s:.0f} s: {error}. Is it "
                "running, and can this host reach it?"
            ) from None
        except redis.RedisError as error:
            raise StoreError(f"The Redis server at {self.address} refused: {error}.") from None

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()


def frame_of(url: str, group: str, version: int) -> str:
    """Return what tells a version of a group from all others on a server, whatever project they are of.

    Args:
        url: The project, without credentials.
        group: The name of the group.
        version: Its version.
    """
    return f"{hashlib.blake2b(url.encode(), digest_size=8).hexdigest()}:{group}:v{version}"


def encode_key(key: Any, kinds: Sequence[str]) -> bytes:
    """Return a key as a field of the hash; `state` is none of them."""
    if is_number(kinds):
        try:
            return struct.pack(">q", key)
        except struct.error:
            raise OverflowError(key) from None
    packed: bytes = b"t" + key.encode() if is_text(kinds) else key
    return packed
