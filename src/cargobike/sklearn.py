"""Train functions as estimators of scikit-learn: `fit`, `predict`, in pipelines and searches."""

from __future__ import annotations

from cargobike.estimators.scikit import Estimator

__all__ = ["Estimator"]
