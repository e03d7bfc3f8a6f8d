"""Run a front: `python -m cargobike.serving.front`."""

from __future__ import annotations

from cargobike.serving.front.process import main

if __name__ == "__main__":
    main()
