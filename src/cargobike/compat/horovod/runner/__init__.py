"""`horovod.runner`: start a function, or a program, as the ranks of a job.

`calling.py` starts functions, `launch.py` is the command `horovodrun`.
"""

from __future__ import annotations

from cargobike.compat.horovod.runner.front import run

__all__ = ["run"]
