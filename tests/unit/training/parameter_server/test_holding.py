"""A worker's copy of a server's parameters: what is shared with the model, sent and received, without a connection."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from cargobike.training.parameter_server.codecs import memory_of, pack
from cargobike.training.parameter_server.holding import Holding
from cargobike.training.parameter_server.messages import TensorSpec


class Channel:
    """A connection over which some bytes have come."""

    def __init__(self, *tensors: torch.Tensor) -> None:
        self.data = b"".join(bytes(memory_of(tensor)) for tensor in tensors)
        self.length = len(self.data)

    def read_into(self, target: memoryview) -> None:
        assert len(target) <= len(self.data)
        target[:] = self.data[: len(target)]
        self.data = self.data[len(target) :]


def parameter(*values: Any, dtype: torch.dtype = torch.float32) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.tensor(values, dtype=dtype))


@pytest.fixture
def model() -> dict[str, torch.nn.Parameter]:
    return {
        "w": parameter([1.0, 2.0], [3.0, 4.0]),
        "half": parameter(5.0, dtype=torch.float64),
        "table": parameter([10.0, 11.0], [12.0, 13.0], [14.0, 15.0]),
        "b": parameter(6.0),
    }


def held(model: dict[str, torch.nn.Parameter], codec: tuple[str, float] = ("none", 0.01)) -> Holding:
    specs = [TensorSpec(name, tuple(p.shape), by_rows=name == "table") for name, p in model.items()]
    return Holding(specs, model, codec)


def numbers(tensor: torch.Tensor) -> list[float]:
    return [float(value) for value in tensor.detach().reshape(-1)]


def receive(holding: Holding, channel: Channel, codec: str, wanted: list[torch.Tensor | None]) -> None:
    holding.receive(channel, channel.length, codec, wanted)  # type: ignore[arg-type]


# -- weights ---------------------------------------------------------------------------------------------------------


def test_dense_parameters_become_views_where_they_can(model: dict[str, torch.nn.Parameter]) -> None:
    holding = held(model)
    assert holding.version == 0
    assert [spec.name for spec in holding.specs] == list(model)
    assert numbers(holding.weights) == [1, 2, 3, 4, 5, 6]
    assert [p is model[name] for p, name in zip(holding.dense, ("w", "half", "b"), strict=True)] == [True] * 3
    assert holding.by_rows == [model["table"]]
    holding.weights += 1
    assert [numbers(model[name]) for name in ("w", "half", "b")] == [[2, 3, 4, 5], [5], [7]]
    assert (model["w"].shape, model["half"].dtype) == ((2, 2), torch.float64)


def test_first_values_are_those_of_the_model_dense_ones_first(model: dict[str, torch.nn.Parameter]) -> None:
    holding = held(model)
    with torch.no_grad():
        model["half"].fill_(50.0)
        model["w"].mul_(10)
    dense, table = (torch.frombuffer(bytearray(part), dtype=torch.float32) for part in holding.first_values())
    assert numbers(dense) == [10, 20, 30, 40, 50, 6]
    assert numbers(table) == [10, 11, 12, 13, 14, 15]


# -- gradients -------------------------------------------------------------------------------------------------------


def test_gradients_are_packed_wherever_they_lie(model: dict[str, torch.nn.Parameter]) -> None:
    holding = held(model)
    model["w"].grad = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    model["half"].grad = torch.tensor([5.0], dtype=torch.float64)
    holding.gradients.fill_(9.0)
    (piece,) = holding.pack_gradients().pieces
    assert numbers(piece) == [1, 2, 3, 4, 5, 0], "what has no gradient has not changed"


def test_the_next_gradients_are_written_beside_those_on_their_way(model: dict[str, torch.nn.Parameter]) -> None:
    holding = held(model)
    holding.clear_gradients()
    assert (model["half"].grad, model["table"].grad) == (None, None)
    grads = [model["w"].grad, model["b"].grad]
    assert all(grad is not None for grad in grads)
    (model["w"].sum() * 2 + model["b"].sum() * 3).backward()
    assert numbers(holding.gradients) == [2, 2, 2, 2, 0, 3], "backward writes where it is sent from"
    (sent,) = holding.pack_gradients().pieces
    assert sent.data_ptr() == holding.gradients.data_ptr()
    model["table"].grad = torch.ones(3, 2)
    holding.clear_gradients()
    assert model["table"].grad is None
    assert numbers(sent) == [2, 2, 2, 2, 0, 3], "it may be sent again"
    assert numbers(holding.gradients) == [0] * 6
    (model["w"].sum() * 7).backward()
    (second,) = holding.pack_gradients().pieces
    assert numbers(second) == [7, 7, 7, 7, 0, 0]
    holding.clear_gradients()
    assert numbers(sent) == [0] * 6, "its memory is used in turns"


@pytest.mark.parametrize(("codec", "is_remembered"), [("int8", True), ("topk", True), ("fp16", False)])
def test_what_a_codec_loses_is_sent_later(codec: str, is_remembered: bool) -> None:
    model = {"w": parameter(0.0, 0.0, 0.0, 0.0)}
    holding = held(model, (codec, 0.5))
    assert (holding._feedback is not None) is is_remembered
    model["w"].grad = torch.tensor([4.0, 1.0, 0.5, 8.0])
    first = holding.pack_gradients()
    model["w"].grad = torch.zeros(4)
    second = holding.pack_gradients()
    if codec == "topk":
        assert (first.count, second.count) == (2, 2)
        assert sorted(numbers(first.pieces[1])) == [4, 8]
        assert sorted(numbers(second.pieces[1])) == [0.5, 1]
    else:
        assert (sum(map(abs, numbers(second.pieces[-1]))) > 0) is is_remembered


@pytest.mark.parametrize("is_sparse", [True, False])
def test_only_rows_that_were_touched_are_sent(model: dict[str, torch.nn.Parameter], is_sparse: bool) -> None:
    holding = held(model)
    ((rows, values),) = holding.rows_touched()
    assert (rows.dtype, tuple(rows.shape), tuple(values.shape)) == (torch.int64, (0,), (0, 2))
    dense = torch.tensor([[0.0, -1.0], [0.0, 0.0], [2.0, -2.0]])
    if is_sparse:
        values_twice = [[1.0, -1.0], [0.0, -1.0], [1.0, -1.0]]
        twice = torch.sparse_coo_tensor([[2, 0, 2]], values_twice, (3, 2), check_invariants=True)
        model["table"].grad = twice
    else:
        model["table"].grad = dense
    ((rows, values),) = holding.rows_touched()
    assert rows.tolist() == [0, 2]
    assert numbers(values) == [0, -1, 2, -2]
    assert values.is_contiguous()


# -- what comes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "fp16"])
def test_parameters_are_received_into_the_model(model: dict[str, torch.nn.Parameter], codec: str) -> None:
    holding = held(model)
    dense, table = torch.arange(6.0), torch.arange(6.0) + 100
    receive(holding, Channel(*pack(codec, dense).pieces, table), codec, [None])
    assert [numbers(model[name]) for name in ("w", "half", "b")] == [[0, 1, 2, 3], [4], [5]]
    assert numbers(model["table"]) == [100, 101, 102, 103, 104, 105]
    some = torch.tensor([2, 0])
    channel = Channel(*pack(codec, dense + 1).pieces, torch.tensor([[7.0, 8.0], [9.0, 1.0]]))
    receive(holding, channel, codec, [some])
    assert channel.data == b""
    assert numbers(model["table"]) == [9, 1, 102, 103, 7, 8]
    receive(holding, Channel(*pack(codec, dense).pieces), codec, [torch.empty(0, dtype=torch.int64)])
    assert numbers(model["w"]) == [0, 1, 2, 3]


def test_a_body_of_another_length_is_not_received(model: dict[str, torch.nn.Parameter]) -> None:
    holding = held(model)
    for count, wanted in ((11, None), (13, None), (12, torch.tensor([1]))):
        with pytest.raises(ConnectionError, match=f"{4 * count} bytes of parameters came instead of"):
            receive(holding, Channel(torch.zeros(count)), "none", [wanted])
    assert numbers(model["w"]) == [1, 2, 3, 4]


def test_a_table_may_have_a_single_row() -> None:
    model = {"table": parameter([1.0, 2.0])}
    receive(held(model), Channel(torch.tensor([7.0, 8.0])), "none", [None])
    assert numbers(model["table"]) == [7, 8]


def test_a_table_without_rows_takes_no_bytes() -> None:
    model = {"table": torch.nn.Parameter(torch.empty(0, 2))}
    receive(held(model), Channel(), "none", [None])
    assert model["table"].shape == (0, 2)
