"""A scheduler is light: no library is loaded that it can do without, also when it looks at triggers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cargobike import data, features, project

PROGRAM = """
import sys
import cargobike.pipelines.scheduling.__main__
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.triggers import Trigger, look_of
from pathlib import Path
for kind, subject in (("changed", "teams"), ("arrived", sys.argv[1] + "/in/*.csv"), ("arrived", "numbers")):
    trigger = Trigger(kind, subject)
    look_of(trigger)(trigger, "", ProjectFolder(Path(sys.argv[1])))
heavy = "numpy pyarrow pandas torch tensorflow duckdb fastapi rich sqlalchemy zmq cloudpickle fsspec".split()
print([name for name in heavy if name in sys.modules])
"""


def test_a_scheduler_that_looks_at_groups_and_files_loads_no_library(tmp_path: Path) -> None:
    project.use(tmp_path)
    try:
        group = features.create_group("teams", key="team", event_time="at")
        group.insert({"team": [1], "at": ["2026-01-01"], "budget": [1.5]})
        data.write({"x": [1]}, "numbers")
    finally:
        project.use(None)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
