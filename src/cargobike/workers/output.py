"""Captured output of one assignment: passed on in pieces, cut in the middle when it grows without bound. Pure."""

from __future__ import annotations

from cargobike.workers.wire.messages import StreamName

PASS_ON_EVERY_S = 0.2
HEAD_BYTES = 8 << 20
TAIL_BYTES = 1 << 20
_LAST_LINES_BYTES = 2000
_RECENT_BYTES = 32 << 10

CRASH = "Fatal Python error: "
"""What the interpreter writes before the stacks of its threads when compiled code has crashed."""


class OutputStream:
    """One captured stream of one worker.

    The first `HEAD_BYTES` of an assignment are passed on as they come; of what follows the last `TAIL_BYTES` are kept
    and passed on when it ends, with a line that says how much is missing.
    """

    def __init__(self) -> None:
        self._fresh = bytearray()
        self._passed_on = 0
        self._tail = bytearray()
        self._left_out = 0
        self._recent = bytearray()

    def add(self, data: bytes) -> None:
        """Add what was printed."""
        self._recent += data
        if len(self._recent) > 2 * _RECENT_BYTES:
            del self._recent[:-_RECENT_BYTES]
        room = HEAD_BYTES - self._passed_on
        if room > 0:
            self._fresh += data[:room]
            self._passed_on += len(data[:room])
            data = data[room:]
        if data:
            self._tail += data
            if len(self._tail) > 2 * TAIL_BYTES:
                cut = len(self._tail) - TAIL_BYTES
                self._left_out += cut
                del self._tail[:cut]

    @property
    def has_news(self) -> bool:
        """Whether there is something to pass on."""
        return bool(self._fresh)

    def take(self, limit: int = 1 << 20) -> bytes:
        """Return what was added since the last call."""
        piece = bytes(self._fresh[:limit])
        del self._fresh[:limit]
        return piece

    def last_lines(self) -> str:
        """Return the end of the output in whole lines, and all of it since a crash, for the report of a failure."""
        crash = self._recent.rfind(CRASH.encode())
        begin = max(0, (crash if crash >= 0 else len(self._recent)) - _LAST_LINES_BYTES)
        text = self._recent[begin:].decode(errors="replace")
        if begin:
            text = text.partition("\n")[2] or text
        return text if not text or text.endswith("\n") else text + "\n"

    def finish(self) -> bytes:
        """Return everything that is still held back, and start over for the next assignment."""
        rest = bytes(self._fresh)
        if self._left_out:
            rest += f"\n[… {self._left_out} bytes left out …]\n".encode()
        rest += self._tail
        self._fresh.clear()
        self._tail.clear()
        self._recent.clear()
        self._passed_on = 0
        self._left_out = 0
        return rest


class CapturedOutput:
    """What a worker has printed, on both streams.

    Attributes:
        due: When something is to be passed on; `None` while there is nothing new.
    """

    def __init__(self) -> None:
        self._streams: dict[StreamName, OutputStream] = {"stdout": OutputStream(), "stderr": OutputStream()}
        self.due: float | None = None
        self._is_empty = True

    def add(self, name: StreamName, data: bytes, now: float) -> None:
        """Add what was printed."""
        self._streams[name].add(data)
        self._is_empty = False
        if self.due is None:
            self.due = now + PASS_ON_EVERY_S

    def take(self) -> list[tuple[StreamName, bytes]]:
        """Return what is new."""
        if self.due is None:
            return []
        self.due = None
        pieces: list[tuple[StreamName, bytes]] = []
        for name, stream in self._streams.items():
            while stream.has_news:
                pieces.append((name, stream.take()))
        return pieces

    def finish(self) -> list[tuple[StreamName, bytes]]:
        """Return everything that is left, and start over for the next assignment."""
        if self._is_empty:
            return []
        self._is_empty = True
        self.due = None
        rests = [(name, stream.finish()) for name, stream in self._streams.items()]
        return [(name, rest) for name, rest in rests if rest]

    def last_lines(self) -> str:
        """Return the end of what was printed, for the report of a failure."""
        return "".join(stream.last_lines() for stream in self._streams.values())
