"""What may be said about parameter servers: all mistakes at once, and defaults for the rest."""

from __future__ import annotations

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.training.server_options import DEFAULTS, check_options, read_codec


def test_what_is_left_out_has_its_default() -> None:
    assert check_options({}) == DEFAULTS
    assert check_options({"staleness": 0}) == {**DEFAULTS, "staleness": 0}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stalenes": 8}, r"no option 'stalenes'.*Did you mean 'staleness'\?"),
        ({"staleness": -1}, "staleness must be None or a whole number of at least 0, not -1"),
        ({"staleness": True}, "staleness must be None or a whole number"),
        ({"on_stale": "fail"}, "on_stale must be 'drop' or 'wait', not 'fail'"),
        ({"warmup_steps": 1.5}, "warmup_steps must be a whole number of at least 0, not 1.5"),
        ({"timeout_s": 0}, "timeout_s must be above 0, 0 was given"),
        ({"checkpoint_every_s": True}, "checkpoint_every_s must be a number of seconds, or a text"),
        ({"compression": "fp61"}, r"compression must be one of none, fp16, bf16, int8, topk, not 'fp61'"),
        ({"parameter_compression": "topk"}, "parameter_compression must be one of none, fp16, bf16, int8, not 'topk'"),
    ],
)
def test_each_mistake_is_said(options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        check_options(options)


def test_all_mistakes_are_said_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_options({"on_stale": "fail", "timeout_s": -1, "compression": "zip"})
    assert all(word in str(caught.value) for word in ("on_stale", "timeout_s", "'zip'"))


@pytest.mark.parametrize(
    ("text", "codec"), [(None, ("none", 0.01)), ("fp16", ("fp16", 0.01)), ("topk:0.05", ("topk", 0.05))]
)
def test_codecs_are_read(text: str | None, codec: tuple[str, float]) -> None:
    assert read_codec(text) == codec


@pytest.mark.parametrize("text", ["topk:0", "topk:2", "topk:many", "fp16:0.5", "topk:nan"])
def test_a_share_is_a_share(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"a share is written as 'topk:0\.05'"):
        read_codec(text)
