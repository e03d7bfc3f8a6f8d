"""The deployment described for programs: an OpenAPI document made from the signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cargobike.core.signatures import Field
from cargobike.core.version import __version__
from cargobike.serving.front.protocols.rows import RowCodec

_PROBLEMS = {
    "400": "The body cannot be read.",
    "401": "A token is needed, or not known.",
    "413": "The body, or the number of rows, is too large.",
    "422": "Rows do not fit the signature; `mistakes` names them.",
    "429": "The queue is full, or the client asks too often; see `Retry-After`.",
    "500": "The model raised an error.",
    "502": "The replica was lost, twice.",
    "503": "No replica is running.",
    "504": "No answer within the deadline.",
}


def document(name: str, model: str, version: int, codec: RowCodec, *, has_tokens: bool) -> dict[str, Any]:
    """Return the document.

    Args:
        name: The deployment's.
        model: The model's.
        version: The version that most requests meet.
        codec: What that version takes and returns.
        has_tokens: Whether callers need one.
    """
    row, answer = row_schema(codec.inputs, codec.keys), row_schema(codec.outputs)
    rows, answers = {"type": "array", "items": row, "minItems": 1}, {"type": "array", "items": answer}
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": name,
            "version": str(version),
            "description": f"{model}:{version}, served by Cargobike {__version__}.",
        },
        "paths": {
            "/predict": _post("Answer a row, or a list of rows", {"anyOf": [row, rows]}, {"anyOf": [answer, answers]}),
            f"/v1/models/{name}:predict": _post("KServe v1", _object(instances=rows), _object(predictions=answers)),
            f"/v2/models/{name}/infer": _post(
                "Open Inference Protocol v2",
                _object(inputs=_tensors(codec.inputs)),
                _object(outputs=_tensors(codec.outputs)),
            ),
            f"/v2/models/{name}": _get("What the model takes and returns"),
            "/v2/health/live": _get("Whether the server runs"),
            "/v2/health/ready": _get("Whether a request would be answered"),
            "/healthz": _get("Whether the server runs"),
            "/metrics": _get("Figures for Prometheus", "text/plain"),
        },
        "components": {"schemas": {"Problem": _problem()}},
    }
    if codec.example:
        described["x-example"] = codec.example
    if has_tokens:
        described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"token": []}]
    return described


def row_schema(fields: Sequence[Field], keys: Sequence[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of a row, or an answer, with these fields."""
    if not fields:
        return {"type": "object", "required": list(keys)} if keys else {}
    if len(fields) == 1:
        return _schema(fields[0])
    return {
        "type": "object",
        "properties": {field.name: _schema(field) for field in fields},
        "required": [field.name for field in fields if not field.nullable],
        "additionalProperties": False,
    }


def _schema(field: Field) -> dict[str, Any]:
    kind = {"BOOL": "boolean", "BYTES": "string"}.get(field.datatype)
    schema: dict[str, Any] = {"type": kind or ("number" if field.datatype.startswith("FP") else "integer")}
    for length in reversed(field.shape):
        schema = {"type": "array", "items": schema}
        if length >= 0:
            schema |= {"minItems": length, "maxItems": length}
    return {"anyOf": [schema, {"type": "null"}]} if field.nullable else schema


def _tensors(fields: Sequence[Field]) -> dict[str, Any]:
    tensor = _object(
        name={"enum": [field.name for field in fields]} if fields else {"type": "string"},
        shape={"type": "array", "items": {"type": "integer"}},
        datatype={"type": "string"},
        data={"type": "array"},
    )
    return {"type": "array", "items": tensor}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _problem() -> dict[str, Any]:
    text = {"type": "string"}
    described = _object(error=text, kind=text, request_id=text)
    described["properties"]["mistakes"] = {"type": "array", "items": text}
    return described


def _post(summary: str, body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    answers: dict[str, Any] = {"200": {"description": "Answered.", "content": {"application/json": {"schema": answer}}}}
    answers |= {status: {"description": words, "content": problem} for status, words in _PROBLEMS.items()}
    request = {"required": True, "content": {"application/json": {"schema": body}}}
    return {"post": {"summary": summary, "requestBody": request, "responses": answers}}


def _get(summary: str, content_type: str = "application/json") -> dict[str, Any]:
    return {"get": {"summary": summary, "responses": {"200": {"description": "OK", "content": {content_type: {}}}}}}
