"""Each name of Hopsworks that scripts use is there, or says what stands in its place."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

from cargobike.compat.hopsworks.names import TRANSLATIONS
from cargobike.compat.hsml.model_registry import Framework

ELSEWHERE = {
    "hsfs.feature_group.FeatureGroup.find_neighbors",
    "hsfs.embedding.EmbeddingIndex",
    "hsml.transformer.Transformer",
    "hsfs.feature_store.FeatureStore.create_external_feature_group",
    "hsfs.feature_store.FeatureStore.get_storage_connector",
}
"""Names that are not found as such: objects that are refused where they would be given, or by `__getattr__`."""


def find(dotted: str) -> Any:
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module("cargobike.compat." + ".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(dotted)


@pytest.mark.parametrize("old", [one.old for one in TRANSLATIONS])
def test_each_name_is_there_or_says_why_not(old: str) -> None:
    translation = next(one for one in TRANSLATIONS if one.old == old)
    assert translation.new or translation.remark
    if old in ELSEWHERE:
        assert not translation.new
    elif old.endswith("ModelRegistry.create_model"):
        assert callable(Framework.create_model)
    elif old.endswith(("dataset_api.DatasetApi.upload", "dataset_api.DatasetApi.download")):
        assert callable(getattr(find("hopsworks.dataset_api.DatasetApi"), old.rpartition(".")[2]))
    else:
        assert callable(find(old))


def test_our_own_names_are_there() -> None:
    for translation in TRANSLATIONS:
        if translation.new:
            module, _, name = translation.new.removeprefix("cargobike.").partition(".")
            found: Any = importlib.import_module(f"cargobike.{module}")
            for part in filter(None, name.split(".")):
                found = getattr(found, part)


def test_no_library_is_loaded_before_it_is_used() -> None:
    program = "import sys, cargobike.compat.hopsworks, cargobike.compat.hsfs, cargobike.compat.hsml\n"
    program += "print([name for name in ('pyarrow', 'pandas', 'numpy', 'pyspark') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
