"""A unit by which systemd keeps a daemon running."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from cargobike.core.settings import PROJECT


def unit(project: Path, network: str, arguments: Sequence[str], *, python: str = sys.executable) -> str:
    """Return the text of a unit for one user; the secret stays in a file of its own.

    Args:
        project: The project's folder.
        network: The network.
        arguments: Further arguments of `cargobike share serve`.
        python: The interpreter.

    Example:
        >>> "share serve --network lab" in unit(Path("/data/p"), "lab", ["--port", "7777"], python="/usr/bin/python3")
        True
    """
    command = [python, "-m", "cargobike.cli", "share", "serve", "--network", network, *arguments]
    words = " ".join(shlex.quote(word).replace("%", "%%") for word in command)
    secret = project / "sharing" / "networks" / network / "secret"
    return f"""\
# Put this into ~/.config/systemd/user/cargobike-share-{network}.service, then:
#   systemctl --user daemon-reload
#   systemctl --user enable --now cargobike-share-{network}
# The network's secret is read from {secret} (mode 600).
[Unit]
Description=Cargobike shares the network {network}
After=network-online.target

[Service]
ExecStart={words}
Environment="{PROJECT}={project}"
Restart=on-failure
RestartSec=5
Nice=10
IOSchedulingClass=idle
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths={project}
PrivateTmp=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
MemoryMax=2G

[Install]
WantedBy=default.target
"""
