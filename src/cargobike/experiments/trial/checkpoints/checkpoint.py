"""Checkpoints of one trial: what a train function sees as `trial.checkpoint`."""

from __future__ import annotations

import logging
import math
import operator
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.records import Direction
from cargobike.core.values.numbers import read_index, read_number
from cargobike.experiments.trial.checkpoints.files import SavedCheckpoint
from cargobike.experiments.trial.checkpoints.folder import (
    DamagedError,
    Meta,
    delete_folder,
    is_checkpoint,
    list_folders,
    number_of,
    read_meta,
    sweep,
    verify,
    write_folder,
)
from cargobike.experiments.trial.checkpoints.forcing import Forcing
from cargobike.experiments.trial.checkpoints.state import read_state, warn_if_path
from cargobike.experiments.trial.checkpoints.surroundings import Remembering, Surroundings

if TYPE_CHECKING:
    from cargobike.core.running.member import Gang
    from cargobike.experiments.trial.checkpoints.sharded import ShardedCheckpoints

_LOG = logging.getLogger(__name__)
_RESCANS = 5


class Checkpoints:
    """Saves the state of a trial, and gives it back to a later attempt.

    Guarantees: a checkpoint appears whole or not at all, whenever the process is killed. A power cut costs at most the
    checkpoints of the last `force_every_s` seconds: so often they are forced to disk, and the last one that was is kept
    until there is a newer one that was, while the training goes on. One that is damaged is never returned: `load` takes
    the newest intact one and logs a warning. Nothing is created before the first `save`. Threads may share it.

    Args:
        root: Folder of this trial's checkpoints; need not exist.
        keep_last: How many of the newest to keep, at least 1.
        keep_best: How many of those with the best `metric` to keep besides.
        direction: Whether the best metric is the highest (`"max"`) or the lowest (`"min"`).
        on_saved: Called with each checkpoint once it is safe, before older ones are deleted.
        start_from: Checkpoints of another trial, its root or a single one of them, that are read while this trial has
            none of its own. A root is the safer choice if that trial still runs and may delete its older ones.
        current_step: Returns the step of the trial's last report, for a `save` that names none.
        remembering: What is saved beside a state; the first `load` goes on from it.
        force_every_s: How many seconds of checkpoints a power cut may cost; 0 forces each to disk.
        gang: The other ranks, if several train together: then rank 0 saves, or all of them a share each.
        rank: Which of them this is.
        began_with: Name of the checkpoint that all ranks begin with: a first `load` before any `save` looks at none
            that is newer, and it is kept until the next attempt. One may be slow to load what another replaces.
    """

    def __init__(
        self,
        root: Path,
        *,
        keep_last: int = 1,
        keep_best: int = 0,
        direction: Direction = "max",
        on_saved: Callable[[SavedCheckpoint], None] | None = None,
        start_from: Path | None = None,
        current_step: Callable[[], int | None] | None = None,
        remembering: Remembering | None = None,
        force_every_s: float = 0.0,
        gang: Gang | None = None,
        rank: int = 0,
        began_with: str | None = None,
    ) -> None:
        # The train function may change its working directory at any time.
        self._root = Path(os.path.abspath(root))
        self._start_from = None if start_from is None else Path(os.path.abspath(start_from))
        self._direction = direction
        self._on_saved = on_saved
        self._current_step = current_step
        self._remembering = remembering or Remembering()
        self._forcing = Forcing(force_every_s)
        self._has_saved = False
        self._lock = threading.RLock()
        self._metas: dict[Path, Meta] = {}
        self._intact: set[Path] = set()
        self._damaged: set[Path] = set()
        self._warned_about_metric = False
        self._gang = gang
        self._rank = rank
        self._began_with = began_with
        self._has_begun = began_with is None
        self._sharded: ShardedCheckpoints | None = None
        self.keep(last=keep_last, best=keep_best)

    def keep(self, *, last: int = 1, best: int = 0) -> None:
        """Choose how many checkpoints to keep from the next `save` on: the newest, and the best besides."""
        mistakes = []
        if type(last) is not int or last < 1:
            mistakes.append(f"last={last!r}: at least the newest one is kept, give 1 or more")
        if type(best) is not int or best < 0:
            mistakes.append(f"best={best!r}: give 0 or more")
        if mistakes:
            raise InvalidInputError("These numbers of checkpoints cannot be kept.", mistakes)
        self._keep_last, self._keep_best = last, best

    def save(self, state: object, *, step: int | None = None, metric: float | None = None) -> SavedCheckpoint:
        """Save a state; in a gang rank 0 does, and for the other ranks this does nothing.

        Args:
            state: Bytes; a file or folder given as a `Path`, which is copied; anything with torch tensors
                in it, such as a dict of `state_dict()`s; or any other object that can be pickled.
            step: Where the training is; the step of the last report if not given, else one more than the
                last save's.
            metric: How good this state is, for keeping the best.

        Raises:
            InvalidInputError: If the state cannot be saved; names the parts that are to blame.
            StoreError: If the disk refuses; earlier checkpoints are untouched.
        """
        warn_if_path(state)
        return self._of_others(step, metric) if self._rank else self._save(state, step, metric)

    def _save(
        self, state: object, step: int | None, metric: float | None, before: Surroundings | None = None
    ) -> SavedCheckpoint:
        """Save a state as rank 0, with what surrounded it when it was copied, if that was earlier."""
        surroundings = before or self._remembering.now()
        score = None if metric is None else read_number(metric, "metric")
        if score is None and self._keep_best and not self._warned_about_metric:
            self._warned_about_metric = True
            _LOG.warning("The best checkpoints are to be kept, but save() was called without metric=.")
        with self._lock:
            at = self._next_step() if step is None else read_index(step)
            folders = sweep(self._root)
            newest = folders[-1] if folders else None
            if not self._has_saved:  # what an earlier attempt left has had its time to reach the disk
                self._forcing.trust(newest)
                self._has_saved = True
            is_forced = self._forcing.must_be_at_once
            try:
                path, meta = write_folder(
                    self._root, state, at, score, after=newest, is_forced=is_forced, surroundings=surroundings
                )
            except OSError as error:
                raise StoreError(
                    f"The checkpoint of step {at} could not be saved in {self._root}: {error}. "
                    "Earlier checkpoints are untouched; free some space or check the permissions."
                ) from error
            if is_forced:
                self._forcing.was_forced(path)
            else:
                self._forcing.begin_if_due(path)
            self._metas[path] = meta
            self._intact.add(path)
            self._has_begun = True
            saved = meta.describe(path)
            if self._on_saved is not None:
                self._on_saved(saved)
            self._delete_superfluous([*folders, path])
        return saved

    def save_sharded(
        self, state: dict[str, Any], *, step: int | None = None, metric: float | None = None, asynchronous: bool = False
    ) -> SavedCheckpoint | None:
        """Save a state of which every rank has a part, in torch's distributed format; every rank must call it.

        Args:
            state: Names with tensors, whole or sharded, and plain values; see `torch.distributed.checkpoint`.
            step: As in `save`.
            metric: As in `save`.
            asynchronous: Whether to copy the state, return `None` at once and write it beside the training; the next
                one waits for it, and so does the end of the train function.

        Raises:
            StoreError: If a rank cannot write its part; earlier checkpoints are untouched.
        """
        at = self._next_step() if step is None else read_index(step)
        self._has_begun = True
        return self._together().save(state, at, metric, self._remembering.now(), asynchronous=asynchronous)

    def load_sharded(self, state: dict[str, Any], *, best: bool = False) -> int | None:
        """Fill a state in place from the newest sharded checkpoint; every rank must call it.

        The number of ranks need not be the one that it was saved with.

        Args:
            state: What to fill: the same names, with tensors of the same shapes as a whole.
            best: Whether to take the checkpoint with the best metric instead of the newest.

        Returns:
            The step that it was saved at; `None` if there is no such checkpoint, and the state is unchanged.
        """
        stored = self._load(None, best=best, keeps_place=True) if self._rank == 0 else None
        self._has_begun = True
        meta = self._together().load(state, stored)
        if meta is None:
            return None
        self._remembering.go_on_at(meta.place)  # every rank, and only if what rank 0 has found is a sharded one
        return meta.step

    def wait(self) -> None:
        """Wait until what was saved asynchronously is a checkpoint."""
        if self._sharded is not None:
            self._sharded.wait()

    def settle(self) -> None:
        """Wait until the checkpoint that is being forced is on disk, and delete those that were kept until then."""
        if not self._lock.acquire(blocking=False):
            return  # another thread saves, perhaps together with ranks that are dead: do not wait for that
        try:
            if self._forcing.wait():
                self._delete_superfluous(list_folders(self._root))
        finally:
            self._lock.release()

    def _together(self) -> ShardedCheckpoints:
        if self._sharded is None:
            # Torch is heavy, and loaded already where there is something to shard.
            from cargobike.experiments.trial.checkpoints.sharded import ShardedCheckpoints  # noqa: PLC0415

            self._sharded = ShardedCheckpoints(self._save, self._gang, self._rank)
        return self._sharded

    def _of_others(self, step: int | None, metric: float | None) -> SavedCheckpoint:
        """Describe what rank 0 saves, which is what this rank loads from now on."""
        self._has_begun = True
        reported = self._current_step() if self._current_step is not None else None
        return SavedCheckpoint(step if step is not None else reported or 0, self._root, 0, metric)

    def load(self, default: Any = None, *, best: bool = False) -> Any:
        """Return the newest intact state, in the form in which it was saved, or `default` if there is none.

        Bytes come back as bytes and objects as objects; of a file or folder the path of the stored copy is
        returned, to be read but not changed, and valid until the next `save`. Tensors come back on the
        device they were on, or on the CPU where that device does not exist. Pickled objects run code when
        they are loaded: load only from projects whose writers you trust.

        Args:
            default: What to return if nothing was saved.
            best: Whether to take the checkpoint with the best metric instead of the newest.
        """
        return self._load(default, best=best)

    def _load(self, default: Any, *, best: bool, keeps_place: bool = False) -> Any:
        with self._lock:
            for _ in range(_RESCANS):
                vanished = False
                for path in self._candidates(best=best):
                    self._intact.discard(path)
                    if not self._is_intact(path):
                        vanished |= not path.exists()
                        continue
                    meta = self._metas[path]
                    try:
                        state = read_state(meta.kind, path / meta.entry)
                        self._has_begun = True
                        self._remembering.go_on_after(meta.reports, is_own=path.parent == self._root)
                        if not keeps_place:
                            self._remembering.go_on_at(meta.place)
                        return state
                    except FileNotFoundError:
                        vanished = True
                if not vanished:  # else its trial replaced it meanwhile: look again
                    break
            self._has_begun = True
        return default

    @property
    def exists(self) -> bool:
        """Whether `load` has something to return."""
        return self._newest() is not None

    @property
    def step(self) -> int | None:
        """The step of the newest intact checkpoint, `None` if there is none."""
        newest = self._newest()
        return None if newest is None else newest.step

    @property
    def path(self) -> Path | None:
        """The folder of the newest intact checkpoint, `None` if there is none."""
        newest = self._newest()
        return None if newest is None else newest.path

    def all(self) -> list[SavedCheckpoint]:
        """Return this trial's own checkpoints, oldest first, as far as they are not known to be damaged."""
        with self._lock:
            own = self._own(self._folders())
            spare = self._forcing.kept - self._kept(own)  # kept only in case the power fails
            return [meta.describe(path) for path, meta in own if path not in spare]

    def clear(self) -> None:
        """Delete this trial's own checkpoints, so that it starts over; those of `start_from` stay.

        In a gang rank 0 does, and for the other ranks this does nothing.
        """
        self._has_begun = True
        if self._rank:
            return
        with self._lock:
            self._forcing.wait()
            self._forcing.trust(None)
            for path in sweep(self._root):
                self._delete(path)

    def __repr__(self) -> str:
        return f"Checkpoints({str(self._root)!r}, steps={[saved.step for saved in self.all()]})"

    def _newest(self) -> SavedCheckpoint | None:
        with self._lock:
            for path in self._candidates(best=False):
                if self._is_intact(path):
                    return self._metas[path].describe(path)
        return None

    def _candidates(self, *, best: bool) -> Iterator[Path]:
        """Yield the checkpoints that could be loaded, the preferred one first."""
        if best:
            yield from self._ranked(self._own(self._folders()))
        yield from reversed([path for path, _ in self._own(self._folders())])
        if self._start_from is not None:
            if is_checkpoint(self._start_from):
                yield self._start_from
            else:
                yield from reversed(list_folders(self._start_from))

    def _own(self, folders: list[Path]) -> list[tuple[Path, Meta]]:
        own = []
        for path in folders:
            if path not in self._metas and path not in self._damaged:
                try:
                    self._metas[path] = read_meta(path)
                except DamagedError as error:
                    self._warn(path, error)
            if path not in self._damaged:
                own.append((path, self._metas[path]))
        return own

    def _folders(self) -> list[Path]:
        folders = list_folders(self._root)
        if self._has_begun:
            return folders
        last = number_of(self._root / self._began_with) if self._began_with else -1
        return [folder for folder in folders if number_of(folder) <= last]

    def _ranked(self, own: list[tuple[Path, Meta]]) -> list[Path]:
        scored = [(meta.metric, path) for path, meta in own if meta.metric is not None and math.isfinite(meta.metric)]
        return [path for _, path in sorted(scored, key=operator.itemgetter(0), reverse=self._direction == "max")]

    def _is_intact(self, path: Path) -> bool:
        if path in self._intact:
            return True
        try:
            self._metas[path] = verify(path)
        except DamagedError as error:
            if path.exists():  # else it was deleted meanwhile, which is not damage
                self._warn(path, error)
            return False
        self._intact.add(path)
        return True

    def _warn(self, path: Path, error: DamagedError) -> None:
        if path not in self._damaged:
            _LOG.warning(
                "The checkpoint %s is damaged (%s) and is not used; an earlier one is, if there is any.", path, error
            )
        self._damaged.add(path)

    def _next_step(self) -> int:
        reported = None if self._current_step is None else self._current_step()
        if reported is not None:
            return reported
        newest = self.step
        return 0 if newest is None else newest + 1

    def _delete_superfluous(self, folders: list[Path]) -> None:
        begun = {self._root / self._began_with} if self._began_with else set()
        kept = self._forcing.kept | self._kept(self._own(folders)) | begun
        for path in folders:
            if path not in kept:
                self._delete(path)

    def _kept(self, own: list[tuple[Path, Meta]]) -> set[Path]:
        """Return the newest and the best, as many as were asked for."""
        return {*(path for path, _ in own[-self._keep_last :]), *self._ranked(own)[: self._keep_best]}

    def _delete(self, path: Path) -> None:
        delete_folder(path, self._metas.pop(path, None))
        self._intact.discard(path)
        self._damaged.discard(path)
