"""msgspec, loaded without what it can do without."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.scripts import run_script

USE = """
import json, sys, threading
{before}
from cargobike.core.package import load_msgspec
load_msgspec()
print(sys.modules.get("typing_extensions") is None)
import msgspec
from typing import Annotated, NotRequired, TypedDict

class Wheel(TypedDict):
    size: int
    tyre: NotRequired[str]

class Bike(msgspec.Struct):
    wheels: list[Wheel]
    load: Annotated[int, msgspec.Meta(ge=0)] = 0

bike = msgspec.json.decode(b'{{"wheels":[{{"size":28}}]}}', type=Bike)
try:
    msgspec.json.decode(b'{{"wheels":[],"load":-1}}', type=Bike)
    refused = False
except msgspec.ValidationError:
    refused = True
import typing_extensions
print(json.dumps([bike.wheels[0], refused, typing_extensions.NotRequired is NotRequired, "{before}" != ""]))
"""


@pytest.mark.parametrize("before", ["", "import typing_extensions", "import msgspec"])
def test_msgspec_reads_all_types_and_the_other_library_can_be_loaded_later(tmp_path: Path, before: str) -> None:
    assert run_script(tmp_path, USE.format(before=before)) == [{"size": 28}, True, True, before != ""]


def test_nothing_is_held_back_while_other_threads_may_load_it(tmp_path: Path) -> None:
    script = """
        import json, sys, threading
        from cargobike.core.package import load_msgspec
        done = threading.Event()
        thread = threading.Thread(target=done.wait)
        thread.start()
        load_msgspec()
        print(json.dumps([name in sys.modules for name in ("msgspec", "typing_extensions")]), flush=True)
        done.set()
        thread.join()
    """
    assert run_script(tmp_path, script) == [False, False]
