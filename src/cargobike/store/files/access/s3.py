"""Storage in a bucket of S3, or of a server that speaks its protocol, through s3fs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cargobike.core.errors import InvalidInputError
from cargobike.store.files.access.access import Access, Claim, Judgement
from cargobike.store.files.access.s3_clients import CLIENTS, CONNECT_S, READ_S
from cargobike.store.files.storage import Entry

_WRITER: Final = "cargobike-writer"
_MANY: Final = 1000  # the most objects that one request can delete
_ARROW_ATTEMPTS: Final = 12  # with pauses that double from 25 ms on: a minute or so
_EXPIRED: Final = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"}
_ADVICE: Final = {
    "NoSuchBucket": "There is no such bucket: create it, or name another.",
    "AccessDenied": "Ask for the right to read, write and list there, or use other credentials (AWS_PROFILE).",
    "InvalidAccessKeyId": "Check the credentials: AWS_ACCESS_KEY_ID, AWS_PROFILE, ~/.aws/credentials.",
    "SignatureDoesNotMatch": "Check the credentials: AWS_SECRET_ACCESS_KEY, AWS_PROFILE, ~/.aws/credentials.",
    "RequestTimeTooSkewed": "Set the clock of this machine.",
    **dict.fromkeys(_EXPIRED, "Renew the credentials: aws sso login, a new session token."),
}
_PASSING: Final = {
    "ConditionalRequestConflict",
    "InternalError",
    "OperationAborted",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "XAmzContentSHA256Mismatch",
}
_NOT_SET = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."


class S3Access(Access):
    """Objects below a prefix; `create` is a put that the server refuses if there is an object (If-None-Match)."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._bucket = parts.netloc.rpartition("@")[2]
        self._prefix = parts.path.strip("/")
        if not self._bucket:
            raise InvalidInputError(f"{url!r} names no bucket; write s3://bucket/path.")
        self._fs = CLIENTS.get()

    def read(self, path: str, start: int, length: int | None) -> bytes | None:
        """Return bytes of an object; those beyond its end are none."""
        if length == 0:
            return None if self.stat(path) is None else b""
        end = None if length is None else start + length
        try:
            if start or end is not None:
                return bytes(self._fs.cat_file(self._full(path), start=start, end=end))
            # One request: several at once could return parts of two versions.
            return bytes(self._fs.cat_file(self._full(path), max_concurrency=1))
        except OSError as error:
            if _is_absent(error):
                return None
            if _code(error) in {"InvalidRange", "416"}:
                return b""
            raise

    def write(self, path: str, data: bytes | Path) -> None:
        """Put an object; a large one in parts, which are visible once they are complete."""
        if isinstance(data, Path):
            self._fs.put_file(str(data), self._full(path))
        else:
            self._fs.pipe_file(self._full(path), data)

    def create(self, path: str, data: bytes, claim: Claim) -> bool:
        """Put an object that is not there yet; its metadata say which call wrote it."""
        try:
            self._call(
                "put_object",
                Key=self._key(path),
                Body=data,
                IfNoneMatch="*",
                Metadata={_WRITER: claim.token},
            )
        except OSError as error:
            if not isinstance(error, FileExistsError) and _code(error) not in {"PreconditionFailed", "412"}:
                raise
            head = self._head(path)
            return head is not None and head.get("Metadata", {}).get(_WRITER) == claim.token
        return True

    def list(self, folder: str, *, deep: bool) -> list[Entry]:
        """Return the objects whose names begin with a folder's."""
        return list(self._list(folder, deep=deep))

    def _list(self, folder: str, *, deep: bool) -> Iterator[Entry]:
        prefix = self._key(folder)
        prefix = f"{prefix}/" if prefix else ""
        options = {} if deep else {"Delimiter": "/"}
        cut = len(self._prefix) + 1 if self._prefix else 0
        while True:
            page = self._call("list_objects_v2", Prefix=prefix, **options)
            for item in page.get("Contents", ()):
                if not item["Key"].endswith("/"):  # some servers have objects that stand for folders
                    yield Entry(item["Key"][cut:], item["Size"], _token(item))
            if not page.get("IsTruncated"):
                return
            options["ContinuationToken"] = page["NextContinuationToken"]

    def stat(self, path: str) -> Entry | None:
        """Return size and token of an object."""
        head = self._head(path)
        return None if head is None else Entry(path, head["ContentLength"], _token(head))

    def delete(self, path: str) -> None:
        """Delete an object and those whose names begin with its name and a slash."""
        keys = [self._key(entry.path) for entry in self._list(path, deep=True)] + [self._key(path)]
        for start in range(0, len(keys), _MANY):
            some = [{"Key": key} for key in keys[start : start + _MANY]]
            answer = self._call("delete_objects", Delete={"Objects": some, "Quiet": True})
            if errors := answer.get("Errors"):
                words = f"{errors[0].get('Key')}: {errors[0].get('Code')} {errors[0].get('Message', '')}"
                kind = PermissionError if errors[0].get("Code") == "AccessDenied" else OSError
                raise kind(words)

    def judge(self, error: Exception) -> Judgement:
        """Try again what servers say when they are busy or away, and after credentials have expired."""
        judgement = self._judge(error)
        if judgement.reopen or not judgement.may_pass:
            CLIENTS.forget(self._fs)
        return judgement

    def _judge(self, error: Exception) -> Judgement:
        code = _code(error)
        if code in _EXPIRED:
            return Judgement(True, _ADVICE[code], reopen=True)
        if code:
            is_server = code in _PASSING or (code.isdigit() and int(code) >= 500)
            return Judgement(is_server or _status(error) >= 500, _ADVICE.get(code, ""))
        if type(error).__name__ in {"NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"}:
            return Judgement(False, _NOT_SET)
        if isinstance(error, PermissionError):
            return Judgement(False, _ADVICE["AccessDenied"])
        if isinstance(error, FileNotFoundError):
            return Judgement(False)
        may_pass = isinstance(error, OSError | EOFError) or type(error).__module__.startswith(
            ("botocore", "aiohttp", "asyncio", "urllib3", "fsspec")
        )
        where = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        return Judgement(may_pass, "Check the network" + (" and AWS_ENDPOINT_URL." if where else "."), reopen=may_pass)

    def arrow(self) -> tuple[Any, str]:
        """Return pyarrow's own client, with the endpoint, region and keys that s3fs has found."""
        from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem  # noqa: PLC0415 - optional, and only for tables

        client = self._fs.connect()
        options: dict[str, Any] = {
            "region": client.meta.region_name,
            "connect_timeout": CONNECT_S,
            "request_timeout": READ_S,
            "retry_strategy": AwsStandardS3RetryStrategy(max_attempts=_ARROW_ATTEMPTS),
        }
        endpoint = urlsplit(client.meta.endpoint_url)
        if not endpoint.netloc.endswith((".amazonaws.com", ".amazonaws.com.cn")):
            options |= {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
        if self._fs.anon:
            options["anonymous"] = True
        elif self._fs.key and self._fs.secret:
            options |= {"access_key": self._fs.key, "secret_key": self._fs.secret, "session_token": self._fs.token}
        return S3FileSystem(**options), "/".join(filter(None, [self._bucket, self._prefix]))

    def _head(self, path: str) -> dict[str, Any] | None:
        try:
            return self._call("head_object", Key=self._key(path))
        except OSError as error:
            if _is_absent(error):
                return None
            raise

    def _call(self, method: str, **arguments: object) -> dict[str, Any]:
        answer: dict[str, Any] = self._fs.call_s3(method, Bucket=self._bucket, **arguments)
        return answer

    def _key(self, path: str) -> str:
        return "/".join(filter(None, [self._prefix, path]))

    def _full(self, path: str) -> str:
        return f"{self._bucket}/{self._key(path)}"


def _token(item: dict[str, Any]) -> str:
    return f"{item.get('ETag', '')}-{item.get('LastModified', '')}"


def _response(error: BaseException) -> dict[str, Any]:
    """Return what the server answered, from the error of the library below or the one that it was made from."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            return response
        if error.__cause__ is None:
            break
        error = error.__cause__
    return {}


def _code(error: BaseException) -> str:
    return str(_response(error).get("Error", {}).get("Code", ""))


def _status(error: BaseException) -> int:
    return int(_response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _is_absent(error: OSError) -> bool:
    return isinstance(error, FileNotFoundError) and _code(error) != "NoSuchBucket"
