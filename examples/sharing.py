"""Publish a table in a private network, and get it in another project: two members on one machine."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from cargobike import data, project, sharing


def main() -> None:
    os.environ["CARGOBIKE_SHARE_SECRET"] = secrets.token_urlsafe()
    with tempfile.TemporaryDirectory() as folder:
        here, there = Path(folder, "here"), Path(folder, "there")

        project.use(here)
        data.write({"x": list(range(10_000)), "y": [3 * x + 1 for x in range(10_000)]}, "points")
        entry = sharing.publish(
            "points", "table:points", network="lab", description="Points on a line", license="CC0-1.0", yes=True
        )
        print(f"published {entry.name}, version {entry.version}, {entry.rows} rows")

        serve = [sys.executable, "-m", "cargobike.cli", "--project", str(here), "share", "serve", "--network", "lab"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as daemon:
            try:
                assert daemon.stdout is not None
                address = re.search(r"at (\S+:\d+)\.", daemon.stdout.readline())
                assert address is not None
                project.use(there)
                arrival = sharing.get("points", network="lab", to=there / "points", peers=[address[1]], quiet=True)
                rows = sum(len(batch["x"]) for batch in data.Loader(str(arrival.folder), batch_size=1000))
                print(f"got {rows} rows, found again: {sharing.search('line')[0].name}")
            finally:
                daemon.terminate()
        project.use(None)


if __name__ == "__main__":
    main()
