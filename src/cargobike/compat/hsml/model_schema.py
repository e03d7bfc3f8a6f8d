"""What a model takes and returns, as Hopsworks has it."""

from __future__ import annotations

from typing import Any

from cargobike.compat.hsml.schema import Schema
from cargobike.models import Signature


class ModelSchema:
    """The schemas of inputs and outputs.

    Args:
        input_schema: What the model takes.
        output_schema: What it returns.
    """

    def __init__(self, input_schema: Schema | None = None, output_schema: Schema | None = None, **more: Any) -> None:
        self.input_schema = input_schema
        self.output_schema = output_schema

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "input_schema": self.input_schema.to_dict() if self.input_schema else None,
            "output_schema": self.output_schema.to_dict() if self.output_schema else None,
        }

    def signature(self) -> Signature:
        """Return it as a signature of ours."""
        inputs = self.input_schema.fields if self.input_schema else ()
        return Signature(inputs, self.output_schema.fields if self.output_schema else ())
