"""A daemon gives, spreads records, obeys, and is alone for its project and network."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.sharing.daemon.control import NAME, ask_daemon, daemon_status
from cargobike.sharing.daemon.messages import AddPeer, AskStatus, Gossip, Pause, Resume, SetLimits, Status, Stop
from cargobike.sharing.daemon.serving import Daemon
from cargobike.sharing.daemon.systemd import unit
from cargobike.sharing.getting.front import get
from cargobike.sharing.network.membership import Membership
from support.swarm import PIECE, fill, lab, project_at, publish, read_folder


def test_a_daemon_gives_what_was_published_before_and_after_it_started(tmp_path: Path) -> None:
    project = project_at(tmp_path / "seed")
    contents = fill(tmp_path / "source", {"a.bin": 5 * PIECE})
    with Daemon(project, lab()) as daemon:
        with Membership(project, lab()) as publisher:
            publish(publisher, tmp_path / "source")
        getter = project_at(tmp_path / "getter")
        get("higgs", network=lab(), to=tmp_path / "to", peers=[daemon.address], project=getter, quiet=True)
        status = daemon.status()
    assert read_folder(tmp_path / "to") == contents
    assert [(one.pieces, one.size) for one in status.given] == [(5, 5 * PIECE)]
    assert [one.place for one in status.shared] == [str(tmp_path / "source")]


def test_records_spread_to_members_that_only_know_a_third(tmp_path: Path) -> None:
    """Two members know only a rendezvous: records pass through it, pieces go straight, and it may be lost then."""
    contents = fill(tmp_path / "source", {"a.bin": 2 * PIECE})
    projects = [project_at(tmp_path / name) for name in ("meeting", "first", "second")]
    with contextlib.ExitStack() as stack:
        rendezvous = stack.enter_context(Daemon(projects[0], lab(), gives=False))
        with (  # which compare catalogues only when there is a reason to
            Daemon(projects[1], lab(), peers=[rendezvous.address], gossip_s=3600) as first,
            Daemon(projects[2], lab(), peers=[rendezvous.address], gossip_s=3600) as second,
        ):
            publish(first.membership, tmp_path / "source")
            for project in (projects[1], projects[0], projects[2]):
                ask_daemon(project, "lab", Gossip())
            assert second.membership.catalogue.entry("higgs").name == "higgs"
            assert first.address in second.membership.book.addresses()
            ask_daemon(projects[0], "lab", Stop())
            stack.close()
            get(
                "higgs",
                network=lab(),
                to=tmp_path / "to",
                project=project_at(tmp_path / "third"),
                quiet=True,
                peers=[second.address],
                timeout_s=20,
            )
    assert read_folder(tmp_path / "to") == contents


def test_a_second_daemon_for_the_same_project_and_network_is_refused_by_name(tmp_path: Path) -> None:
    project = project_at(tmp_path / "seed")
    with Daemon(project, lab()):
        with (
            pytest.raises(StoreError, match=f"is served for this project by process {os.getpid()} on host"),
            Daemon(project, lab()),
        ):
            pass
        assert daemon_status(project, "lab") is not None, "the first one is still there"
    with Daemon(project, lab()):
        pass


def test_its_user_can_ask_pause_limit_and_stop_it(tmp_path: Path) -> None:
    deep = tmp_path / ("a folder with a long name " * 4) / ("and another one " * 5)
    project = project_at(deep / "seed")
    with pytest.raises(NotFoundError, match="Start one: cargobike share serve --network lab"):
        ask_daemon(project, "lab", AskStatus())
    with Daemon(project, lab()) as daemon:
        socket = daemon.membership.folder / NAME
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        ask_daemon(project, "lab", Pause())
        ask_daemon(project, "lab", SetLimits(send="2MB/s", hours=("mon-fri 08:00-18:00 send=1MB/s",)))
        ask_daemon(project, "lab", AddPeer(address="127.0.0.1:9"))
        status = ask_daemon(project, "lab", AskStatus())
        assert isinstance(status, Status)
        assert status.is_paused
        assert status.limits.send == "2MB/s"
        assert [peer.address for peer in status.peers] == ["127.0.0.1:9"]
        ask_daemon(project, "lab", Resume())
        assert daemon.status().is_paused is False
        with pytest.raises(InvalidInputError, match="is no rate"):
            ask_daemon(project, "lab", SetLimits(send="quick"))
        with pytest.raises(InvalidInputError, match="write host:port"):
            ask_daemon(project, "lab", AddPeer(address="nonsense"))
        ask_daemon(project, "lab", Stop())
        daemon.run()
    assert daemon_status(project, "lab") is None
    with Daemon(project, lab()) as again:
        assert again.status().limits.send == "2MB/s", "limits are kept"


def test_a_unit_for_systemd_holds_no_secret(tmp_path: Path) -> None:
    text = unit(tmp_path / "my project", "lab", ["--port", "7777"], python="/opt/my env/bin/python")
    assert "ExecStart='/opt/my env/bin/python' -m cargobike.cli share serve --network lab --port 7777" in text
    assert f'Environment="CARGOBIKE_PROJECT={tmp_path / "my project"}"' in text
    assert "SECRET" not in text
