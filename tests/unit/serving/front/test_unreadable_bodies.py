"""Bodies that no decoder understands are mistakes of their callers, whatever the model takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cargobike.serving.front.desk.problems import Refused
from cargobike.serving.front.protocols import kserve_v1, open_inference, plain
from cargobike.serving.front.protocols.rows import RowCodec
from cargobike.serving.front.refusals import LONGEST, kept_rows
from support.logged_requests import RECORDS, VECTORS

BODIES = [
    b"[" * 5000,
    b'{"instances":' * 5000,
    b'"\xff"',
    b'{"instances": ["\xff"]}',
    b'{"town": "\xff", "age": 3}',
    b'{"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES", "data": ["\xff"]}]}',
    b"1e999",
    b"",
]
READERS: list[Callable[[bytes, RowCodec], Any]] = [
    plain.read,
    kserve_v1.read,
    lambda body, codec: open_inference.read(body, codec, "m"),
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
@pytest.mark.parametrize("signature", [None, VECTORS, RECORDS], ids=["any", "vectors", "records"])
def test_a_body_that_cannot_be_read_is_refused(body: bytes, signature: Any) -> None:
    for read in READERS:
        with pytest.raises(Refused) as refusal:
            read(body, RowCodec(signature))
        assert refusal.value.problem.status in {400, 422}
    kept_rows(body, ["x"], [])
    kept_rows(body, ["x"], ["x"])


def test_of_a_refused_body_only_what_is_known_to_be_harmless_is_kept() -> None:
    tensor = b'{"inputs": [{"name": "town", "shape": [1], "datatype": "BYTES", "data": ["sesame"]}], "age": [3]}'
    assert kept_rows(tensor, ["age", "town"], ["town"]) == [{"inputs": [{"shape": [], "data": []}], "age": [3]}]
    assert kept_rows(b'["sesame"]', ["age", "town"], ["town"]) == [[]]
    assert kept_rows(b"sesame", ["age"], ["town"]) is None
    assert kept_rows(b"sesame", ["age"], []) == ["sesame"]
    assert kept_rows(b"[" + b"1," * LONGEST + b"1]", [], []) is None
