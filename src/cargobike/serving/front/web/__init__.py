"""Around a request: who may ask, how often, how long a connection may take, metrics, descriptions, the page."""

from __future__ import annotations
