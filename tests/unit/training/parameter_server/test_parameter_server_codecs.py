"""Codecs: what comes back is near enough, and what was lost is not forgotten."""

from __future__ import annotations

import pytest
import torch

from cargobike.core.errors import InvalidInputError
from cargobike.training.parameter_server.codecs import ErrorFeedback, pack, packed_bytes, unpack
from cargobike.training.server_options import CODECS, read_codec


def there_and_back(codec: str, values: torch.Tensor, ratio: float = 0.1) -> torch.Tensor:
    packed = pack(codec, values, ratio)
    body = torch.cat([piece.view(torch.uint8) for piece in packed.pieces])
    assert len(body) == packed_bytes(codec, values.numel(), packed.count)
    return unpack(codec, body, values.numel(), packed.count)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [1, 7, 1024, 1025, 5000])
def test_what_comes_back_is_near_enough(codec: str, size: int) -> None:
    values = torch.randn(size, generator=torch.Generator().manual_seed(size))
    error = (there_and_back(codec, values) - values).abs()
    largest = float(values.abs().max())
    if codec == "topk":
        assert float(error.max()) < largest or size == 1
    else:
        assert float(error.max()) <= {"none": 0, "fp16": 0.001, "bf16": 0.01, "int8": 0.005}[codec] * largest


@pytest.mark.parametrize("codec", ["int8", "topk"])
def test_feedback_makes_up_for_what_was_lost(codec: str) -> None:
    feedback = ErrorFeedback(300)
    gradient = torch.randn(300, generator=torch.Generator().manual_seed(1))
    total = torch.zeros(300)
    rounds = 60
    for _ in range(rounds):
        packed = feedback.pack(codec, gradient.clone(), 0.1)
        total += unpack(codec, torch.cat([piece.view(torch.uint8) for piece in packed.pieces]), 300, packed.count)
    torch.testing.assert_close(total / rounds, gradient, atol=0.4 if codec == "topk" else 0.001, rtol=0)


def test_zeros_and_nothing_survive() -> None:
    for codec in CODECS:
        assert torch.equal(there_and_back(codec, torch.zeros(10)), torch.zeros(10))
        assert there_and_back(codec, torch.zeros(0)).numel() == 0


def test_an_index_from_outside_is_refused() -> None:
    body = torch.cat([torch.tensor([99], dtype=torch.int32).view(torch.uint8), torch.ones(1).view(torch.uint8)])
    with pytest.raises(InvalidInputError, match="outside the shard"):
        unpack("topk", body, 10, 1)


def test_shares_are_read() -> None:
    assert read_codec("topk:0.25") == ("topk", 0.25)
    assert read_codec(None) == ("none", 0.01)
