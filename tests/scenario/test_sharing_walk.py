"""The walk of a stranger: two projects, two daemons; one publishes, the other finds, gets, reads, rates."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from cargobike import data, project
from support.scripts import environment

pytestmark = pytest.mark.timeout(300)
SECRET = "the secret of the lab"
ROWS = 50_000


class Site:
    """A project in a folder of its own, and the commands that are called there."""

    def __init__(self, folder: Path, secret: str = SECRET) -> None:
        folder.mkdir()
        self.folder = folder
        self._variables = {
            **environment(),
            "CARGOBIKE_PROJECT": str(folder / "project"),
            "CARGOBIKE_SHARE_SECRET": secret,
        }

    def call(self, *words: str, expect: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "cargobike.cli", "share", *words],
            cwd=self.folder,
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == expect, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def told(self, *words: str) -> object:
        return json.loads(self.call(*words, "--json"))

    @contextmanager
    def serving(self, *words: str) -> Iterator[str]:
        """Run the daemon of this project, and yield its address."""
        process = subprocess.Popen(
            [sys.executable, "-m", "cargobike.cli", "share", "serve", "--network", "lab", *words],
            cwd=self.folder,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        watch = threading.Timer(120, process.kill)
        watch.start()
        try:
            printed = process.stdout.readline()
            address = re.search(r"at (\S+:\d+)\.", printed)
            assert address is not None, printed + process.stdout.read()
            yield address[1]
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, process.stdout.read()
        finally:
            watch.cancel()
            process.kill()
            process.wait()
            process.stdout.close()


def test_what_one_project_publishes_another_finds_gets_and_reads(tmp_path: Path) -> None:
    here, there = Site(tmp_path / "here"), Site(tmp_path / "there")
    project.use(here.folder / "project")
    try:
        random = np.random.default_rng(1)
        data.write({"pt": random.random(ROWS), "label": random.integers(0, 2, ROWS)}, "higgs")
    finally:
        project.use(None)
    said = ("--description", "Collisions", "--license", "CC0")
    published = here.told("publish", "higgs", "table:higgs", "--network", "lab", *said, "--yes")
    assert isinstance(published, dict)
    assert (published["rows"], published["is_served"]) == (ROWS, False)
    with here.serving() as address, there.serving("--peer", address):
        assert "higgs@" in there.call("find", "collis", "--network", "lab", "--peer", address)
        got = there.told("get", "higgs", "--network", "lab", "--peer", address, "--to", "got")
        assert isinstance(got, dict)
        assert (got["size"], got["size_fetched"]) == (published["size"], published["size"])
        read = sum(len(batch["pt"]) for batch in data.Loader(str(there.folder / "got"), batch_size=1000))
        assert read == ROWS
        there.call("rate", "higgs", "5", "Clean")
        again = there.told("get", "higgs", "--network", "lab", "--peer", address, "--to", "again")
        assert isinstance(again, dict)
        assert again["size_fetched"] == 0, "what is here is not fetched again"
        status = here.told("status")
        assert isinstance(status, dict)
        assert sum(one["size"] for one in status["given"]) >= published["size"]
        stranger = Site(tmp_path / "stranger", secret="some other secret of mine")
        refused = stranger.call("get", "higgs", "--network", "lab", "--peer", address, "--to", "x", expect=1)
        assert "secret" in refused
    rated = here.told("show", "higgs")
    assert isinstance(rated, dict)
    assert [(one["rating"], one["text"]) for one in rated["opinions"]] == [(5, "Clean")]
    assert not os.path.exists(tmp_path / "stranger" / "x" / "1")
