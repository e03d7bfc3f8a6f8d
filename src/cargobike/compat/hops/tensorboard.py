"""`hops.tensorboard`: where a train function writes what TensorBoard shows."""

from __future__ import annotations

from cargobike import tensorboard as ours
from cargobike.compat.hops.translating import custom
from cargobike.compat.hops.translating.gone import no_longer
from cargobike.compat.noticing import formerly

__all__ = ["interactive_debugger", "logdir", "non_interactive_debugger", "visualize"]

_DEBUGGER = (
    "The debugger of TensorFlow 1 has no successor: run trials in this process (workers=0) and use breakpoint()."
)

interactive_debugger = no_longer("hops.tensorboard.interactive_debugger", _DEBUGGER)
non_interactive_debugger = no_longer("hops.tensorboard.non_interactive_debugger", _DEBUGGER)


@formerly("hops.tensorboard.logdir")
def logdir() -> str:
    """Return the directory for this run's TensorBoard files; a local one, which is kept with the run."""
    return custom.logdir() or ours.logdir()


@formerly("hops.tensorboard.visualize")
def visualize(hdfs_root_logdir: str) -> str:
    """Show an experiment in TensorBoard until this process ends, and return the address to open."""
    return custom.show_in_tensorboard(hdfs_root_logdir)
