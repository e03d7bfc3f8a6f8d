from __future__ import annotations

import socket
from pathlib import Path

import pytest

from cargobike.compat.horovod.runner.discovery import Discovery
from cargobike.compat.horovod.runner.hosts import read_discovered, read_hostfile, read_hosts, slots_here
from cargobike.core.errors import InvalidInputError, NotFoundError, WaitError


def test_hosts_are_names_with_how_many_ranks_have_room() -> None:
    assert read_hosts("localhost:2, tower:4,node-1.cluster") == {"localhost": 2, "tower": 4, "node-1.cluster": 1}


def test_a_host_that_is_named_twice_has_room_for_both() -> None:
    assert read_hosts("localhost:2,localhost:1") == {"localhost": 3}


@pytest.mark.parametrize("text", ["", "a:b", "a:2,,", "a:2;b:3", "$(reboot):1"])
def test_what_is_no_host_is_named(text: str) -> None:
    with pytest.raises(InvalidInputError, match="host:slots"):
        read_hosts(text)


def test_hostfiles_have_a_host_in_each_line(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# ours\nlocalhost slots=2\n\ntower:3  # new\nother\n")
    assert read_hostfile(str(file)) == {"localhost": 2, "tower": 3, "other": 1}


def test_a_hostfile_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere cannot be read"):
        read_hostfile(str(tmp_path / "nowhere"))


def test_this_machine_has_several_names() -> None:
    assert slots_here({"localhost": 1, "127.0.0.1": 2, socket.gethostname(): 3}) == 6


def test_another_machine_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)tower: .*horovod\.spark\.run.*MASTER_ADDR"):
        slots_here({"localhost": 1, "tower": 2})


def test_discovered_hosts_have_the_given_room_unless_they_say_so() -> None:
    assert read_discovered("localhost\ntower:3\n", 4) == {"localhost": 4, "tower": 3}
    assert read_discovered("", 4) == {}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "discover.sh"
    path.write_text(f"#!/bin/sh\ncat {tmp_path}/hosts\n")
    path.chmod(0o755)
    return path


def test_a_discovery_script_is_asked_and_its_other_hosts_are_not_used(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hosts").write_text("localhost:3\nfar-away:2\n")
    discovery = Discovery(str(script))
    try:
        assert discovery.first() == 3
    finally:
        discovery.close()
    assert "far-away" in capsys.readouterr().err


def test_a_discovery_script_that_fails_is_named(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    discovery = Discovery(str(script))
    with pytest.raises(WaitError, match="has not named any host"):
        discovery.first()
    discovery.close()
    assert "ended with code 1" in capsys.readouterr().err
