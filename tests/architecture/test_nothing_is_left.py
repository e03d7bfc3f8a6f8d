"""The check after each test finds processes that were left behind, also orphans."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST.read_text().replace("GRACE_S = 5.0", "GRACE_S = 0.2"))
    return pytester


def test_a_child_left_running_fails_its_test_and_is_ended(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import subprocess

        def test_leaves_a_child():
            subprocess.Popen(["sleep", "777"])

        def test_after_it_nothing_is_left():
            pass
        """
    )
    result = suite.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*left running after the test:", "* sleep 777"])


def test_an_orphan_is_found_by_the_project_in_its_environment(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import subprocess

        def test_leaves_a_grandchild():
            subprocess.run("setsid sleep 778 >/dev/null 2>&1 &", shell=True, check=True)
        """
    )
    result = suite.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["* sleep 778"])


def test_children_that_ended_and_children_of_a_longer_lived_fixture_are_fine(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import subprocess

        import pytest

        @pytest.fixture(scope="module")
        def server():
            process = subprocess.Popen(["sleep", "779"])
            yield process
            process.kill()
            process.wait()

        def test_uses_the_server(server):
            subprocess.run(["true"], check=True)

        def test_uses_it_again(server):
            assert server.poll() is None
        """
    )
    result = suite.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)


def test_each_test_has_a_project_of_its_own(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import os

        seen = set()

        def test_one(tmp_path):
            assert os.environ["CARGOBIKE_PROJECT"] == str(tmp_path)
            seen.add(tmp_path)

        def test_two(tmp_path):
            assert os.environ["CARGOBIKE_PROJECT"] == str(tmp_path)
            assert tmp_path not in seen
        """
    )
    suite.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)
