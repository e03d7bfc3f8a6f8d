"""What this process may compute on: the GPUs and CPU threads it was given.

Inside an experiment that is what its worker was given, elsewhere everything that the machine has. Nothing here imports
or initializes a deep-learning library.
"""

from __future__ import annotations

from cargobike.engines.local.devices import accelerator, get_gpus, get_num_cpus, get_num_gpus

__all__ = ["accelerator", "get_gpus", "get_num_cpus", "get_num_gpus"]
