"""Which modules are mutated, and the tests that must notice."""

from __future__ import annotations

WANTED = 0.9
"""The least share of mutants that the tests must kill."""

_SCHEDULING = tuple(
    f"tests/unit/experiments/scheduling/test_{name}.py"
    for name in (
        "gangs_formed",
        "running_attempts",
        "scheduler",
        "scheduler_answers",
        "gangs_scheduler",
        "conclusion",
        "scheduler_taken_up",
        "scheduler_deterministic",
        "roster",
    )
)
_JOURNAL = tuple(
    f"tests/unit/store/journal/test_{name}.py"
    for name in ("journal_writing", "journal", "chained_lines", "damaged_journal", "any_facts")
)
_SERVER = ("tests/unit/training/parameter_server", "tests/unit/training/test_server_options.py")
_SHARD = ("tests/unit/training/parameter_server/test_server_shard.py",)
_RUNGS = ("tests/unit/search/optimizers/test_asha.py", "tests/unit/search/optimizers/test_hyperband.py")

TESTS: dict[str, tuple[str, ...]] = {
    "store/journal/journal.py": _JOURNAL,
    "store/journal/lines.py": _JOURNAL,
    "experiments/scheduling/attempt.py": _SCHEDULING,
    "experiments/scheduling/blame.py": ("tests/unit/experiments/scheduling/test_blame.py",),
    "experiments/scheduling/conclusion.py": _SCHEDULING,
    "experiments/scheduling/gangs.py": _SCHEDULING,
    "experiments/scheduling/roster.py": ("tests/unit/experiments/scheduling/test_roster.py",),
    "experiments/scheduling/running.py": _SCHEDULING,
    "experiments/scheduling/scheduler.py": _SCHEDULING,
    "experiments/asking/gangs.py": ("tests/unit/experiments/asking/test_gangs_asked.py",),
    "experiments/trial/checkpoints/files.py": ("tests/unit/experiments/trial/checkpoints/test_checkpoint_files.py",),
    "experiments/trial/checkpoints/folder.py": ("tests/unit/experiments/trial/checkpoints/test_checkpoint_folder.py",),
    "experiments/trial/checkpoints/forcing.py": ("tests/unit/experiments/trial/checkpoints",),
    "workers/wire/link.py": ("tests/unit/workers/wire/test_link.py",),
    "workers/wire/mailbox.py": ("tests/unit/workers/wire/test_mailbox.py",),
    "workers/wire/packets.py": ("tests/unit/workers/wire/test_packets.py",),
    "workers/wire/server.py": ("tests/unit/workers/wire/test_server.py",),
    "workers/wire/connection.py": ("tests/unit/workers/wire/test_server.py",),
    "workers/wire/strangers.py": ("tests/unit/workers/wire/test_strangers.py",),
    "workers/wire/inner.py": ("tests/unit/workers/wire", "tests/unit/workers/test_agent.py"),
    "search/rules/stop_rules.py": ("tests/unit/search/rules",),
    "search/models/parzen.py": ("tests/unit/search/models/test_parzen.py",),
    "search/models/rungs.py": _RUNGS,
    "search/optimizers/asha.py": _RUNGS,
    "data/shard.py": ("tests/unit/data/test_shard_rows.py", "tests/unit/data/test_feeding.py"),
    "training/parameter_server/update_rules.py": _SERVER,
    "training/parameter_server/codecs.py": _SERVER,
    "training/parameter_server/division.py": _SERVER,
    "training/parameter_server/holding.py": ("tests/unit/training/parameter_server/test_holding.py",),
    "training/parameter_server/serving.py": ("tests/unit/training/parameter_server/test_serving.py",),
    "training/parameter_server/shard.py": _SHARD,
    "training/parameter_server/shard_file.py": _SHARD,
    "training/parameter_server/optimizer.py": _SERVER,
    "training/wire/handshake.py": _SERVER,
    "training/wire/sealing.py": _SERVER,
}
"""By module, as a path below the package: files and folders of tests."""
