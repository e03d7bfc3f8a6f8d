"""Which files of a publication may lie on this disk at once, on their way to a storage: pure, no disk, no thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence


class Window:
    """Files that are begun, so many that their sizes stay below a bound. Not for several threads.

    A file that alone is larger than the bound is begun when no other is. One that a reader waits for is begun at once.

    Args:
        sizes: The bytes of each file.
        most: How many bytes of files may be begun at once; `None` for any number.

    Example:
        >>> window = Window([4, 4, 9, 1], most=8)
        >>> window.advance(), window.advance()
        ([0, 1], [])
        >>> window.close(0), window.advance(), window.close(1), window.advance()
        (None, [], None, [2])
    """

    def __init__(self, sizes: Sequence[int], most: int | None) -> None:
        self._sizes, self._most = sizes, most
        self._waiting = deque(range(len(sizes)))
        self._begun: set[int] = set()
        self._used = 0

    @property
    def room(self) -> int:
        """Bytes of this disk that are needed at most, except for what readers ask for out of order."""
        waiting = [self._sizes[index] for index in (*self._begun, *self._waiting)]
        return sum(waiting) if self._most is None else min(sum(waiting), max(self._most, *waiting, 0))

    def skip(self, files: Iterable[int]) -> None:
        """Note files that are in their places already."""
        gone = set(files)
        self._waiting = deque(index for index in self._waiting if index not in gone)

    def prefer(self, files: Iterable[int]) -> None:
        """Have files come first of which parts are on this disk already."""
        first = set(files)
        self._waiting = deque(sorted(self._waiting, key=lambda index: (index not in first, index)))

    def advance(self) -> list[int]:
        """Begin as many files as there is room for, and return them."""
        begun = []
        while self._waiting and (
            self._most is None or not self._begun or self._used + self._sizes[self._waiting[0]] <= self._most
        ):
            begun.append(self._begin(self._waiting.popleft()))
        return begun

    def begin_now(self, index: int) -> bool:
        """Begin a file that is waited for, whatever room there is; return whether it was not begun before."""
        if index not in self._waiting:
            return False
        self._waiting.remove(index)
        self._begin(index)
        return True

    def close(self, index: int) -> None:
        """Note that nothing of a file is on this disk any more."""
        if index in self._begun:
            self._begun.remove(index)
            self._used -= self._sizes[index]

    def _begin(self, index: int) -> int:
        self._begun.add(index)
        self._used += self._sizes[index]
        return index
