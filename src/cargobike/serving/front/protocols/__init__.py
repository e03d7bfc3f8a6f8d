"""What callers speak: plain rows, KServe v1, the Open Inference Protocol v2. Bytes to rows, answers to bytes; pure."""

from __future__ import annotations
