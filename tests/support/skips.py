"""A test that is skipped without a reason that we know fails: what does not run proves nothing."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from support import hdfs_server, programs, real_cluster

IS_ROOT = os.geteuid() == 0

ALLOWED = {
    "root may write everywhere": IS_ROOT,
    "this machine does not let us mount": not IS_ROOT,
    "this machine allows no network namespaces": not IS_ROOT,
    "this torch can use GPUs": True,
    "the device is not absent here": True,
    hdfs_server.REASON: not hdfs_server.IS_HERE,
    real_cluster.REASON: not real_cluster.IS_HERE,
    **{programs.reason(name): not programs.CAN_INSTALL and programs.find(name) is None for name in programs.PACKAGES},
}
"""Why a test may be skipped, and whether that can be so here. Whatever the tests need besides is installed for them."""


def is_allowed(reason: str) -> bool:
    """Tell whether a test may be skipped for this reason."""
    return any(is_so and text in reason for text, is_so in ALLOWED.items())


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and not is_allowed(reason := _reason(report)):
        report.outcome = "failed"
        report.longrepr = f"skipped for no reason that is allowed in {__name__}: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and not is_allowed(reason := _reason(report)):
        report.outcome = "failed"
        report.longrepr = f"skipped for no reason that is allowed in {__name__}: {reason}"
    return report
