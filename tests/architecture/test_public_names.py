"""The public names are these, each is there, and documents teach no others."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cargobike
from architecture.public_names import FORMER, PROPERTIES, PUBLIC

ROOT = Path(__file__).resolve().parents[2]
EXTRA_LIBRARIES = {
    "cargobike.dashboard": "fastapi",
    "cargobike.keras": "keras",
    "cargobike.sklearn": "sklearn",
    "cargobike.spark": "pyspark",
    "cargobike.torch": "torch",
}
FRAMEWORKS_BEHIND = {"cargobike.callbacks"}
"""Doors whose every name loads another framework, which takes half a minute in all; those tests are slow."""
INTERNALS_IN_PROSE = {"docs/architecture.md"}
"""Pages, besides decisions, that explain how the inside works; their code uses public names only, like any other."""


def allowed() -> dict[str, set[str]]:
    """Return what may be named of each public module, the public modules in it included."""
    names = {module: {*listed.split(), *PROPERTIES.get(module, "").split()} for module, listed in PUBLIC.items()}
    for module in PUBLIC:
        package, _, last = module.rpartition(".")
        if package:
            names[package].add(last)
    return names


ALLOWED = allowed()


def mistakes_in_python(code: str) -> Iterator[str]:
    """Yield what a piece of Python uses of the package that is not public."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "cargobike" and not is_public(alias.name):
                    yield f"import {alias.name}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "cargobike":
            for alias in node.names:
                others = of_others(f"{node.module}.{alias.name}")
                if not others and alias.name not in ALLOWED.get(node.module or "", set()):
                    yield f"from {node.module} import {alias.name}"
        elif isinstance(node, ast.Attribute):
            yield from mistakes_in_name(ast.unparse(node))


def mistakes_in_name(dotted: str) -> Iterator[str]:
    """Yield a dotted name if it leads through the package to something that is not public."""
    if re.fullmatch(r"cargobike(\.\w+)+", dotted) and not is_public(dotted):
        yield dotted


def is_public(dotted: str) -> bool:
    """Tell whether a dotted name is a public module, a public name, or something of a public name."""
    if of_others(dotted):
        return True
    parts = dotted.split(".")
    deepest = max(length for length in range(1, len(parts) + 1) if ".".join(parts[:length]) in PUBLIC)
    module = ".".join(parts[:deepest])
    return deepest == len(parts) or parts[deepest] in ALLOWED[module]


def of_others(dotted: str) -> bool:
    """Tell whether a name is one of an older library's, which `translations` list and not we have chosen."""
    return re.match(r"cargobike\.compat\.(\w+)", dotted + ".") is not None


def python_of(page: Path) -> Iterator[str]:
    """Yield the Python in a document, an example or a notebook."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        yield text
    elif page.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "code":
                yield "".join(line for line in cell["source"] if not line.startswith(("%", "!")))
    else:
        for block in re.findall(r"^( *)```python[^\n]*\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL):
            indent = len(block[0])
            yield "\n".join(line[indent:] for line in block[1].splitlines())


def pages() -> list[Path]:
    """Return every page and program that teaches how to use the package."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    found += [page for page in (ROOT / "examples").rglob("*") if page.suffix in {".md", ".py", ".ipynb"}]
    return sorted(found)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("module", PUBLIC)
def test_each_public_module_has_these_names(module: str) -> None:
    if module in EXTRA_LIBRARIES:
        pytest.importorskip(EXTRA_LIBRARIES[module])
    there = importlib.import_module(module)
    assert sorted(there.__all__) == sorted(PUBLIC[module].split())
    if module in FRAMEWORKS_BEHIND:
        for name in there.__all__:
            source = importlib.util.find_spec(there._SOURCES[name])
            assert source is not None
            assert f"class {name}" in Path(source.origin or "").read_text(encoding="utf-8")
        return
    for name in there.__all__:
        resolved = importlib.import_module(f"{module}.{name}") if f"{module}.{name}" in PUBLIC else getattr(there, name)
        assert resolved is not None, name
    assert there.__doc__


def test_every_public_module_is_a_door_of_the_package_and_no_other() -> None:
    doors = {name.split(".")[1] for name in PUBLIC if name != "cargobike"}
    assert doors == cargobike._DOORS
    assert doors <= set(dir(cargobike))


def test_every_other_module_and_room_says_that_it_is_internal() -> None:
    silent = []
    for module in pkgutil.iter_modules(cargobike.__path__):
        name = f"cargobike.{module.name}"
        if name not in PUBLIC and "nternal" not in (importlib.import_module(name).__doc__ or ""):
            silent.append(name)
    assert silent == []


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_code_in_documents_uses_public_names(page: Path) -> None:
    mistakes = [mistake for code in python_of(page) for mistake in mistakes_in_python(code)]
    assert mistakes == []


def pages_for_users() -> list[Path]:
    """Return the pages that do not explain how the inside works."""
    written = [page for page in pages() if page.suffix == ".md"]
    return [page for page in written if page.parent.name != "decisions" and name_of(page) not in INTERNALS_IN_PROSE]


@pytest.mark.parametrize("page", pages_for_users(), ids=name_of)
def test_documents_name_public_names(page: Path) -> None:
    names = re.findall(r"(?<![\w/.-])cargobike(?:\.[a-zA-Z_]\w*)+", page.read_text(encoding="utf-8"))
    assert [
        name for name in names if name.rpartition(".")[2] not in FILES and name not in GROUPS and not is_public(name)
    ] == []


FILES = {"git", "whl", "example", "sqlite", "toml", "css", "js"}
"""Endings of files and addresses that look like names."""

GROUPS = {"cargobike.flavours", "cargobike.products", "cargobike.storage"}
"""Groups of entry points, which no module is called after."""


def test_examples_in_docstrings_use_public_names() -> None:
    mistakes, looked_at = [], 0
    for path in sorted((ROOT / "src" / "cargobike").rglob("*.py")):
        for line in re.findall(r"^ +(?:>>>|\.\.\.) (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            looked_at += 1
            if match := re.match(r"from (cargobike[.\w]*) import (.+)", line):
                names = re.split(r",\s*", match[2])
                mistakes += [f"{path.name}: {line}" for name in names if name not in ALLOWED.get(match[1], set())]
            else:
                dotted = re.findall(r"(?<![\"'])\bcargobike(?:\.\w+)+", line)
                mistakes += [f"{path.name}: {name}" for name in dotted if not is_public(name)]
    assert mistakes == []
    assert looked_at > 100


def test_a_name_that_is_not_public_is_found() -> None:
    code = "import cargobike.search\nfrom cargobike.search.asha import ASHA\ncargobike.core.errors.StoreError\n"
    code += "from cargobike.optimizers import ASHA\nfrom cargobike import errors\ncargobike.torch.prepare(model).sync()"
    assert set(mistakes_in_python(code)) == {
        "import cargobike.search",
        "from cargobike.search.asha import ASHA",
        "cargobike.core",
        "cargobike.core.errors",
        "cargobike.core.errors.StoreError",
    }


def test_what_documents_taught_before_still_works() -> None:
    program = "\n".join(f"from {module} import {', '.join(names.split())}" for module, names in FORMER.items())
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_former_and_public_names_are_the_same_objects() -> None:
    from cargobike import engines, journals, optimizers, results

    former = {
        ("cargobike.search.asha", "ASHA"): optimizers.ASHA,
        ("cargobike.store.fold", "read_record"): journals.read_record,
        ("cargobike.store.comparison", "compare"): results.compare,
        ("cargobike.engines.spark", "SparkEngine"): engines.SparkEngine,
    }
    for (module, name), present in former.items():
        assert getattr(importlib.import_module(module), name) is present


LIGHT = "callbacks, engines, errors, journals, optimizers, project, results, simulation, spaces, stop_rules"


def test_public_modules_load_no_framework() -> None:
    program = f"import sys\nfrom cargobike import {LIGHT}\n"
    program += "print(sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=300, capture_output=True, text=True)
    loaded = set(ast.literal_eval(done.stdout))
    assert loaded & {"torch", "numpy", "pyspark", "optuna", "pandas", "sqlalchemy", "fastapi", "zmq"} == set()


def test_the_reference_names_every_public_name() -> None:
    words = set(re.findall(r"\w+", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")))
    missing = {f"{module}.{name}" for module, names in PUBLIC.items() for name in names.split() if name not in words}
    returned_only = {f"cargobike.torch.{name}" for name in ("ParameterClient", "Prepared", "Traffic")}
    assert missing - returned_only - {"cargobike.__version__"} == set()
