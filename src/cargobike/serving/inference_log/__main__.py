"""Run the process of an inference log: `python -m cargobike.serving.inference_log`."""

from __future__ import annotations

from cargobike.serving.inference_log.process import main

if __name__ == "__main__":
    main()
