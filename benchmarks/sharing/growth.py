"""Print how a file grows: bytes of each 100 ms, as a receiver of `flows.py` does, for other programs.

growth.py FILE SECONDS
"""

from __future__ import annotations

import os
import sys
import time

path, seconds = sys.argv[1], float(sys.argv[2])
until, last, counts = time.monotonic() + seconds, 0, []
while (now := time.monotonic()) < until:
    size = os.stat(path).st_blocks * 512 if os.path.exists(path) else 0
    counts.append(f"{int(now / 0.1)}:{max(0, size - last)}")
    last = max(last, size)
    time.sleep(0.1)
print(" ".join(counts))
