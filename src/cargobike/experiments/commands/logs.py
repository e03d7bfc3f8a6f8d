"""`cargobike logs`."""

from __future__ import annotations

import codecs
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from cargobike.cli.terminal import is_terminal, neutralized
from cargobike.core.errors import NotFoundError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import ExperimentState
from cargobike.experiments.commands.naming import ExperimentId
from cargobike.experiments.finding import find_experiment
from cargobike.experiments.reading import journal_reader, settle

_LOOK_EVERY_S: Final = 0.2
_CHUNK_BYTES: Final = 1 << 16


def logs(
    experiment: ExperimentId,
    *,
    trial: Annotated[int | None, typer.Option(min=0, help="Only this trial.")] = None,
    rank: Annotated[int, typer.Option(min=0, help="Of this rank, if trials ran on several workers.")] = 0,
    stdout: Annotated[bool, typer.Option("--stdout", help="Only standard output.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="Only standard error.")] = False,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on printing until it has ended.")] = False,
) -> None:
    """Print what the trials of an experiment wrote."""
    folder = find_experiment(experiment)
    reader = journal_reader(folder)
    record = fold(reader.read_new())
    settle(record, reader, folder)
    if trial is not None and trial not in record.runs:
        available = f"trials 0 to {len(record.runs) - 1}" if record.runs else "no trials yet"
        raise NotFoundError(f"There is no trial {trial} in {folder.id}; it has {available}.", wanted=trial)
    streams = [name for name, wanted in (("stdout", stdout), ("stderr", stderr)) if wanted or stdout == stderr]
    output = _Output(folder, streams, only=trial, rank=rank)
    while True:
        # Asked before copying: so everything that was written before the end is copied.
        is_over = not follow or _is_over(record, trial)
        output.copy_new(record.runs)
        if is_over:
            break
        time.sleep(_LOOK_EVERY_S)
        settle(record, reader, folder)
    if not output.has_written and not follow:
        typer.secho("Nothing was written.", err=True, dim=True)


def _is_over(record: ExperimentRecord, trial: int | None) -> bool:
    if record.state is not ExperimentState.RUNNING:
        return True
    return trial is not None and record.runs[trial].state.is_final


class _Output:
    """Copies new output from several files to standard output, under a line that names the trial and the stream."""

    def __init__(self, folder: ExperimentFolder, streams: Sequence[str], *, only: int | None, rank: int) -> None:
        self._folder = folder
        self._rank = rank
        self._streams = streams
        self._only = only
        self._files: dict[tuple[int, str], _Tail] = {}
        self._last: tuple[int, str] | None = None
        self.has_written = False

    def copy_new(self, numbers: Iterable[int]) -> None:
        for number in numbers if self._only is None else [self._only]:
            folder = self._folder.trial(number)
            for stream in self._streams:
                key = number, stream
                if key not in self._files:
                    self._files[key] = _Tail(folder.output(stream, self._rank))
                self._copy(key)

    def _copy(self, key: tuple[int, str]) -> None:
        for chunk in self._files[key].new_chunks():
            if self._last != key:
                self._announce(key)
                self._last = key
            self.has_written = True
            if is_terminal():
                sys.stdout.write(neutralized(self._files[key].decode(chunk), keep_colours=True))
            else:
                sys.stdout.flush()
                sys.stdout.buffer.write(chunk)
        sys.stdout.flush()

    def _announce(self, key: tuple[int, str]) -> None:
        if self._only is not None and (len(self._streams) == 1 or not is_terminal()):
            return
        gap = "\n" if self._last is not None else ""
        sys.stdout.write(f"{gap}==> trial {key[0]:04d} {key[1]} <==\n")


class _Tail:
    """Reads what has been added to a file since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def new_chunks(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                chunks = list(iter(lambda: file.read(_CHUNK_BYTES), b""))
        except FileNotFoundError:
            return []
        self._offset += sum(map(len, chunks))
        return chunks

    def decode(self, chunk: bytes) -> str:
        return self._decoder.decode(chunk)
