from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from cargobike.compat.horovod.common.variables import rank_variables
from cargobike.compat.horovod.runner.output import RankOutput
from cargobike.compat.horovod.runner.results import new_key, take_results, write_result
from cargobike.core.errors import AuthenticationError, FunctionError, NotFoundError


def test_results_come_back_by_rank_and_leave_nothing(tmp_path: Path) -> None:
    key, folder = new_key(), tmp_path / "results"
    for rank in (1, 0):
        write_result(folder, rank, {"rank": rank}, key)
    assert take_results(folder, range(2), key) == [{"rank": 0}, {"rank": 1}]
    assert not folder.exists()


def test_a_rank_without_a_result_is_named(tmp_path: Path) -> None:
    key = new_key()
    write_result(tmp_path, 0, 1, key)
    with pytest.raises(NotFoundError, match="rank 1 of 2 has left no result"):
        take_results(tmp_path, range(2), key)


class Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return (exec, ("raise SystemExit('it was unpickled')",))


@pytest.mark.parametrize("written_with", ["another key", "another rank"])
def test_what_a_stranger_has_written_is_not_unpickled(tmp_path: Path, written_with: str) -> None:
    key = new_key()
    write_result(tmp_path, 1, Bomb(), key if written_with == "another rank" else new_key())
    (tmp_path / "horovod-result-1").rename(tmp_path / "horovod-result-0")
    with pytest.raises(AuthenticationError, match="was not written by rank 0"):
        take_results(tmp_path, range(1), key)


def test_a_result_that_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    with pytest.raises(FunctionError, match="Rank 3 returned a lock"):
        write_result(tmp_path, 3, threading.Lock(), new_key())


def test_lines_have_their_rank_before_them_however_they_arrive() -> None:
    out, err = io.StringIO(), io.StringIO()
    output = RankOutput(2, stdout=out, stderr=err)
    output.take(0, "stdout", b"epo")
    output.take(1, "stdout", b"one\ntwo\n")
    output.take(0, "stdout", b"ch 1\nlast")
    output.take(1, "stderr", b"\xff\n")
    output.close()
    assert out.getvalue().splitlines() == [
        "[1]<stdout>:one",
        "[1]<stdout>:two",
        "[0]<stdout>:epoch 1",
        "[0]<stdout>:last",
    ]
    assert err.getvalue() == "[1]<stderr>:\\xff\n"


def test_output_goes_to_a_folder_for_each_rank(tmp_path: Path) -> None:
    output = RankOutput(12, folder=str(tmp_path))
    output.take(3, "stdout", b"a\nb")
    output.take(11, "stderr", b"c")
    output.close()
    assert (tmp_path / "rank.03" / "stdout").read_bytes() == b"a\nb"
    assert (tmp_path / "rank.11" / "stderr").read_bytes() == b"c"


def test_ranks_find_the_variables_of_horovod() -> None:
    variables = rank_variables({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
                                "GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2", "HOROVOD_HOSTNAME": "tower"})  # fmt: skip
    assert variables == {
        "HOROVOD_RANK": "3",
        "HOROVOD_SIZE": "4",
        "HOROVOD_LOCAL_RANK": "1",
        "HOROVOD_LOCAL_SIZE": "2",
        "HOROVOD_CROSS_RANK": "1",
        "HOROVOD_CROSS_SIZE": "2",
        "HOROVOD_HOSTNAME": "tower",
    }
