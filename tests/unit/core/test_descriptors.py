"""The limit of descriptors is raised for the driver only, and a reserve is there when none is left."""

from __future__ import annotations

from pathlib import Path

from support.scripts import run_script


def test_the_limit_is_raised_while_it_is_needed_and_children_can_go_back(tmp_path: Path) -> None:
    seen = run_script(
        tmp_path,
        """
        import json, os, resource
        from cargobike.core.running.descriptors import enough_descriptors, go_back_to, limit_before

        def limits():
            return resource.getrlimit(resource.RLIMIT_NOFILE)

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 256))
        seen = {"before": (limits(), limit_before())}
        with enough_descriptors():
            with enough_descriptors():
                pass
            seen["within"] = (limits(), limit_before())
            high = os.dup2(0, 200)
            child = os.fork()
            if child == 0:
                go_back_to(limit_before())
                is_closed = not os.path.exists("/proc/self/fd/200")
                os._exit(0 if limits() == (64, 256) and is_closed else 1)
            seen["child"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        seen["after"] = (limits(), limit_before())
        print(json.dumps(seen))
        """,
    )
    assert seen == {
        "before": [[64, 256], None],
        "within": [[256, 256], 64],
        "child": 0,
        "after": [[64, 256], None],
    }


def test_the_reserve_is_used_when_no_descriptor_is_left_and_filled_up_again(tmp_path: Path) -> None:
    seen = run_script(
        tmp_path,
        """
        import json, os, resource
        from cargobike.core.running import descriptors

        def used():
            return sum(os.path.exists(f"/proc/self/fd/{fd}") for fd in range(64))

        def another():
            return os.open(os.devnull, os.O_RDONLY)

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        before = used()
        with descriptors.enough_descriptors():
            in_reserve = used() - before
            opened = []
            try:
                while True:
                    opened.append(another())
            except OSError as error:
                is_recognized = descriptors.is_out_of_descriptors(error)
            others = [descriptors.from_reserve(another) for _ in range(in_reserve)]
            try:
                descriptors.from_reserve(another)
            except OSError as error:
                is_at_the_end = descriptors.is_out_of_descriptors(error)
            for fd in opened + others:
                os.close(fd)
            os.close(descriptors.from_reserve(another))
            text = descriptors.out_of_descriptors()
        print(json.dumps([in_reserve, len(others), is_recognized, is_at_the_end, used() - before, text]))
        """,
    )
    in_reserve, from_reserve, is_recognized, is_at_the_end, left_open, text = seen
    assert in_reserve == from_reserve > 0
    assert is_recognized
    assert is_at_the_end
    assert left_open == 0
    assert "64" in text
    assert "ulimit -n" in text
