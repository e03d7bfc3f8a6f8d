"""A client of the Open Inference Protocol over gRPC, as thin as it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import grpc

from cargobike.serving.front.rpc.messages import SERVICE, message_class
from cargobike.serving.front.rpc.tensors import CONTENTS

WAIT_S = 30.0

Column = tuple[str, Sequence[int], Sequence[Any]]
"""Datatype, shape and elements."""


def infer_request(model: str, columns: Mapping[str, Column], **more: Any) -> Any:
    """Return a request with typed contents."""
    message = message_class("ModelInferRequest")(model_name=model, **more)
    for name, (datatype, shape, values) in columns.items():
        tensor = message.inputs.add(name=name, datatype=datatype, shape=shape)
        getattr(tensor.contents, CONTENTS[datatype]).extend(values)  # type: ignore[index]
    return message


class Calls:
    """Makes calls to one address; every wait has an end.

    Args:
        address: Host and port.
        token: What is sent with each call.
        certificate: What to trust, for an encrypted connection.
    """

    def __init__(self, address: str, token: str = "", certificate: bytes = b"") -> None:
        if certificate:
            self._channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(certificate))
        else:
            self._channel = grpc.insecure_channel(address)
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()

    @classmethod
    def over(cls, channel: grpc.Channel, token: str) -> Calls:
        """Return what calls over a channel of another kind, and closes it."""
        calls = cls.__new__(cls)
        calls._channel, calls._metadata = channel, (("authorization", f"Bearer {token}"),)
        return calls

    def __enter__(self) -> Calls:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()

    def __call__(self, method: str, message: Any = None, *, timeout_s: float = WAIT_S, **metadata: str) -> Any:
        """Return the answer to a call."""
        return self.begin(method, message, timeout_s=timeout_s, **metadata).result()

    def begin(self, method: str, message: Any = None, *, timeout_s: float = WAIT_S, **metadata: str) -> Any:
        """Make a call, and return what its answer will be in."""
        response = message_class(f"{method}Response")
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}", lambda given: given.SerializeToString(), response.FromString
        )
        more = tuple((key.replace("_", "-"), value) for key, value in metadata.items())
        message = message_class(f"{method}Request")() if message is None else message
        return call.future(message, timeout=timeout_s, metadata=(*self._metadata, *more), wait_for_ready=True)

    def send(self, method: str, body: bytes) -> bytes:
        """Send bytes that may be no message at all."""
        answer: bytes = self._channel.unary_unary(f"/{SERVICE}/{method}")(body, timeout=WAIT_S, metadata=self._metadata)
        return answer


def refusal(call: Any) -> tuple[str, str, dict[str, str]]:
    """Return the code, the words and the hints of a call that is refused."""
    try:
        answer = call()
    except grpc.RpcError as error:
        return error.code().name, error.details(), dict(error.trailing_metadata() or ())
    raise AssertionError(f"it was answered: {answer}")
