"""Student's t distribution, as far as confidence intervals need it."""

from __future__ import annotations

import math


def t_quantile(probability: float, freedom: float) -> float:
    """Return the value below which a t-distributed number lies with the given probability.

    Example:
        >>> round(t_quantile(0.975, 2), 4)
        4.3027

    Args:
        probability: Between 0 and 1, both excluded.
        freedom: Degrees of freedom, above 0.
    """
    if not (0 < probability < 1 and freedom > 0):
        raise ValueError(f"no t quantile for probability {probability!r} and {freedom!r} degrees of freedom")
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    low, high = 0.0, 1.0
    while _t_below(high, freedom) < probability:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _t_below(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_below(value: float, freedom: float) -> float:
    """Return the probability that a t-distributed number lies below a value of at least 0."""
    return 1 - 0.5 * _beta_share(freedom / 2, 0.5, freedom / (freedom + value * value))


def _beta_share(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # where the fraction converges quickly
        return 1 - _beta_share(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return front * _continued_fraction(a, b, x) / a


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the fraction of the incomplete beta function from the front, by Lentz's method."""
    tiny = 1e-300
    numerator, denominator = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    result = denominator
    for step in range(1, 1000):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            denominator = 1 / _away_from_zero(1 + term * denominator, tiny)
            numerator = _away_from_zero(1 + term / numerator, tiny)
            change = numerator * denominator
            result *= change
        if abs(change - 1) < 1e-15:
            break
    return result


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) >= tiny else tiny
