"""`cargobike.compat.hops` finds its modules when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cargobike import devices, errors, tensorboard
from cargobike.compat import hops
from cargobike.compat.hops.names import TRANSLATIONS


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'experimnet'"):
        _ = hops.experimnet


def test_importing_the_package_is_light() -> None:
    code = (
        "import sys, cargobike.compat.hops as hops; assert 'hdfs' in dir(hops);"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'pyspark', 'torch', 'tensorflow'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


OTHERS = ("hops.featurestore.", "hops.model.", "hops.serving.", "pydoop.")
OURS = [one for one in TRANSLATIONS if not one.old.startswith(OTHERS)]


def test_every_listed_name_is_there_or_says_why_not() -> None:
    assert len(OURS) > 120
    missing = []
    for one in OURS:
        _, module, *names = one.old.split(".")
        place = getattr(hops, module)
        if names and not callable(getattr(place, names[0], None)):
            missing.append(one.old)
    assert missing == []


def test_every_call_for_users_is_listed() -> None:
    listed = {one.old for one in OURS}
    modules = sorted(hops.MODULES - {"featurestore", "model", "serving", "constants"})
    told = {"hops.kafka.get_broker_endpoints_list", "hops.exceptions", "hops.numpy_helper.fromregex"}
    names = {f"hops.{module}.{name}" for module in modules for name in getattr(hops, module).__all__}
    assert {name for name in names - listed if not name.startswith(tuple(told))} == {
        "hops.project.get_project_info_as_shared",
        "hops.project.project_id_as_shared",
    }


def test_what_is_the_same_is_the_same() -> None:
    same = {one.old: one.new for one in OURS if one.same and one.returns}
    assert same == {
        "hops.tensorboard.logdir": "cargobike.tensorboard.logdir",
        "hops.devices.get_num_gpus": "cargobike.devices.get_num_gpus",
        "hops.exceptions.RestAPIError": "cargobike.errors.CargobikeError",
    }
    assert hops.tensorboard.logdir() == tensorboard.logdir()
    assert hops.devices.get_num_gpus() == devices.get_num_gpus()
    assert hops.exceptions.RestAPIError is errors.CargobikeError
