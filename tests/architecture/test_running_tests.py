"""The tests themselves run in several processes at once, and where programs that some of them need are missing."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from support import parallel, programs

pytest_plugins = ["pytester"]

TESTS = Path(__file__).resolve().parents[1]


def test_what_is_shared_is_made_once_for_all_processes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
    pytester.makeconftest(
        """
        import os, pytest

        pytest_plugins = ["support.parallel"]

        def note(name):
            with open(os.path.join(os.path.dirname(__file__), name), "a") as file:
                file.write("made\\n")

        @pytest.fixture(scope="session")
        def spark_cluster():
            note("cluster")

        @pytest.fixture(scope="session")
        def spark_application(spark_cluster):
            note("application")
        """
    )
    site = """
        import pytest
        from conftest import note

        @pytest.fixture(scope="module")
        def site():
            note(__name__)

        @pytest.mark.parametrize("turn", range(4))
        def test_site(site, turn):
            pass

        """
    application = """
        import pytest

        @pytest.mark.parametrize("turn", range(4))
        def test_application(spark_application: None, turn):
            pass
        """
    cluster = application.replace("application", "cluster")
    alone = "import pytest\n@pytest.mark.parametrize('turn', range(8))\ndef test_alone(turn): pass\n"
    pytester.makepyfile(test_one=site, test_two=site, test_three=application, test_four=cluster, test_five=alone)
    pytester.runpytest_subprocess("-n", "3", "-p", "no:cacheprovider").assert_outcomes(passed=24)
    for name in ("cluster", "application", "test_one", "test_two"):
        assert (pytester.path / name).read_text() == "made\n", name


def test_fixtures_for_the_whole_session_have_a_group() -> None:
    found: set[str] = set()
    for path in sorted((TESTS / "support").glob("*.py")):
        found |= set(re.findall(r'scope="session"\)\ndef ([a-z]\w*)', path.read_text()))
    assert found == set(parallel.SESSION_FIXTURES) - {
        "spark_application",
        "storage_url",
    }  # made of the others, for each test


def test_a_test_whose_program_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(pytest.skip.Exception, match=r"^needs git: apt-get install git$"):
        programs.require("git")


def test_without_root_what_is_missing_is_named_and_the_tests_go_on(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "id").chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", str(TESTS.parent / ".ci" / "system-packages")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    packages = "git chromium default-jre-headless postgresql iproute2 redis-server"
    assert f"missing here: {packages}; tests that need them are skipped" in done.stderr
    assert f"as root: apt-get install {packages}" in done.stderr
