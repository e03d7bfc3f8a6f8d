"""One shape for an answer: what is documented is what is sent."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import pydantic
import pytest

from cargobike.ui.answers import Answer
from cargobike.ui.web.answering import answer, encoded, model_of, sends


class Wheel(Answer):
    """A wheel."""

    spokes: Annotated[int, pydantic.Field(ge=0, description="How many.")]


class Bike(Answer):
    """A bike."""

    name: str
    wheels: list[Wheel]
    load: float | None


class Tricycle(Bike):
    """A bike with one more wheel."""

    is_stable: bool


def test_what_is_sent_are_the_fields_in_their_order() -> None:
    bike = Tricycle(name="t", wheels=[Wheel(spokes=3)], load=None, is_stable=True)
    assert encoded(bike) == b'{"name":"t","wheels":[{"spokes":3}],"load":null,"is_stable":true}'


def test_the_document_is_made_of_the_same_fields() -> None:
    schema = model_of(Tricycle).model_json_schema()
    assert schema["title"] == "Tricycle"
    assert schema["description"] == "A bike with one more wheel."
    assert schema["required"] == list(Tricycle.__struct_fields__) == ["name", "wheels", "load", "is_stable"]
    assert schema["$defs"]["Wheel"]["properties"]["spokes"] == {
        "description": "How many.",
        "minimum": 0,
        "title": "Spokes",
        "type": "integer",
    }


def test_a_wrong_answer_is_found() -> None:
    with pytest.raises(pydantic.ValidationError, match="greater than or equal to 0"):
        model_of(Wheel).model_validate_json(encoded(Wheel(spokes=-1)))


def test_arrays_are_lists_and_what_json_has_no_number_for_is_null() -> None:
    assert encoded({"x": np.array([1.0, math.nan]), "n": np.int64(3)}) == b'{"x":[1.0,null],"n":3}'


def test_an_endpoint_keeps_its_name_its_words_and_its_return_type() -> None:
    @sends
    def bike(spokes: int) -> Wheel:
        """Return a wheel."""
        return Wheel(spokes=spokes)

    response = bike(spokes=4)
    assert (response.status_code, response.body) == (200, b'{"spokes":4}')
    assert (bike.__name__, bike.__doc__) == ("bike", "Return a wheel.")
    assert bike.__annotations__["return"] == "Wheel"
    assert answer(None, status=202).body == b"null"
