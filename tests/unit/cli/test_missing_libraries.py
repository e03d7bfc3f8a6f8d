"""Without the libraries of one product, its commands say what to install, and everything else works."""

from __future__ import annotations

from pathlib import Path

from support.scripts import run_script

WITHOUT_PYARROW = """
import json, logging, sys
sys.modules["pyarrow"] = None  # as if it were not installed
"""


def test_a_command_says_which_extra_brings_its_library(tmp_path: Path) -> None:
    script = f"""{WITHOUT_PYARROW}
from typer.testing import CliRunner
from cargobike.cli.app import app

answers = [CliRunner().invoke(app, words) for words in (["data", "ls"], ["features", "ls"], ["ls"])]
print(json.dumps([[answer.exit_code, answer.output.strip()] for answer in answers]))
"""
    tables, groups, experiments = run_script(tmp_path, script)
    assert tables == [1, "`cargobike data` needs pyarrow, which is not installed here: pip install 'cargobike[data]'"]
    assert groups[1].endswith("needs pyarrow, which is not installed here: pip install 'cargobike[features]'")
    assert experiments[0] == 0


def test_names_of_a_door_say_it_too(tmp_path: Path) -> None:
    script = f"""{WITHOUT_PYARROW}
from cargobike import data, features

said = []
for module, name in ((data, "write"), (features, "create_group")):
    try:
        getattr(module, name)
    except ImportError as error:
        said.append(str(error))
print(json.dumps(said))
"""
    assert run_script(tmp_path, script) == [
        "cargobike.data.write needs pyarrow, which is not installed here: pip install 'cargobike[data]'",
        "cargobike.features.create_group needs pyarrow, which is not installed here: pip install 'cargobike[features]'",
    ]


def test_the_dashboard_leaves_out_what_it_cannot_show(tmp_path: Path) -> None:
    script = f"""{WITHOUT_PYARROW}
from starlette.testclient import TestClient
from cargobike.store.files import project
from cargobike.ui.web.app import create_app
from cargobike.ui.web.state import ServerState

class Keep(logging.Handler):
    said = []
    def emit(self, record):
        self.said.append(record.getMessage())

logging.getLogger("cargobike").setLevel(logging.INFO)
logging.getLogger("cargobike").addHandler(Keep())
with TestClient(create_app(ServerState.of(project.prepare())), base_url="http://127.0.0.1") as client:
    statuses = [client.get(path).status_code for path in ("/", "/data", "/features")]
print(json.dumps([statuses, Keep.said]))
"""
    statuses, said = run_script(tmp_path, script)
    assert statuses == [200, 404, 404]
    assert [words.partition(" needs ")[0] for words in said if "section" in words] == [
        "The section 'Data' of the dashboard",
        "The section 'Features' of the dashboard",
        "The section 'Monitoring' of the dashboard",
    ]
