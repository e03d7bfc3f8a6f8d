"""`python -m cargobike.compat.horovod.runner -np 2 python train.py`."""

from __future__ import annotations

import sys

from cargobike.compat.horovod.runner.launch import main

if __name__ == "__main__":
    sys.exit(main())
