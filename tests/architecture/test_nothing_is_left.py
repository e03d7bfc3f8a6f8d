"""The checks of every test find processes that were left behind, also orphans, and skips that were not meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("CARGOBIKE_TESTS_GRACE_S", "0.2")
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
    pytester.makeconftest('pytest_plugins = ["support.surroundings", "support.skips"]')
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


def test_a_skip_needs_a_reason_that_is_allowed(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        def test_needs_what_is_not_here():
            pytest.importorskip("no_such_library")

        @pytest.mark.skip(reason="not today")
        def test_is_put_off():
            pass

        def test_cannot_be_tried_here():
            pytest.skip("the device is not absent here")

        @pytest.mark.xfail(reason="known")
        def test_is_known_to_fail():
            raise AssertionError
        """
    )
    result = suite.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1, failed=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(["*no reason that is allowed in support.skips: *not today*"])


def test_a_module_is_not_skipped_either(suite: pytest.Pytester) -> None:
    suite.makepyfile("import pytest; pytest.importorskip('no_such_library')")
    result = suite.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no reason that is allowed in support.skips: *no_such_library*"])
