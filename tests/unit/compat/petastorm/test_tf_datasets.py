"""Readers as data sets of TensorFlow: types, shapes, windows, a second pass."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from cargobike.compat.petastorm import make_batch_reader, make_reader
from cargobike.compat.petastorm.ngram import NGram
from cargobike.compat.petastorm.tf_utils import make_petastorm_dataset, tf_tensors
from support.petastorm_sets import GARDEN, write_garden


def test_rows_are_namedtuples_of_tensors(tmp_path: Path) -> None:
    url = write_garden(tmp_path / "garden")
    with make_reader(url, ["id", "price", "grid"], shuffle_row_groups=False) as reader:
        dataset = make_petastorm_dataset(reader)
        assert dataset.element_spec.grid.shape == (2, 3)
        rows = list(dataset)
        again = list(dataset.batch(16))
    assert [int(row.id) for row in rows] == list(range(40))
    assert (rows[3].price.dtype, rows[3].price.numpy()) == (tf.string, b"0.375")
    assert [len(batch.id) for batch in again] == [16, 16, 8]
    with make_batch_reader(url, ["id", "bed"], shuffle_row_groups=False) as reader:
        batches = list(make_petastorm_dataset(reader).unbatch().batch(40))
    assert batches[0].id.numpy().tolist() == list(range(40))
    with make_reader(url, ["word"]) as reader, pytest.raises(tf.errors.InvalidArgumentError, match="'word'=None"):
        list(make_petastorm_dataset(reader))
    windows = NGram({0: [GARDEN.id], 1: [GARDEN.id, GARDEN.grid]}, 1, GARDEN.id)
    with make_reader(url, windows, shuffle_row_groups=False) as reader:
        first = next(iter(make_petastorm_dataset(reader)))
    assert (int(first[0].id), int(first[1].id), first[1].grid.shape) == (0, 1, (2, 3))
    with pytest.raises(ValueError, match="make_petastorm_dataset"):
        tf_tensors(None)
