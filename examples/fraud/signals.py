"""What a model is told of a payment: features that are counted every hour, and those that the payment itself brings.

Groups hold what is known of accounts, merchants and devices. A row says what was counted up to a full hour, and is
true from that hour on, in training as in production: no payment ever sees itself, or one that came after it. The view
joins them with a payment and computes the signals, with the same functions for training rows and for requests.
"""

from __future__ import annotations

import numpy as np

from cargobike import features

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

TABLE = "transactions"
VIEW = "payment_signals"
GROUPS = {"accounts": "account_id", "account_hours": "account_id", "merchant_hours": "merchant_id"}
GROUPS["device_hours"] = "device_id"

_WINDOWS = """
WINDOW day AS (PARTITION BY {key} ORDER BY moment RANGE BETWEEN INTERVAL 23 HOURS PRECEDING AND CURRENT ROW),
      week AS (PARTITION BY {key} ORDER BY moment RANGE BETWEEN INTERVAL 167 HOURS PRECEDING AND CURRENT ROW)
"""

COUNTED = {
    "account_hours": f"""
        WITH hours AS (
            SELECT account_id, date_trunc('hour', moment) + INTERVAL 1 HOUR AS moment, count(*) AS paid,
                   sum(amount) AS spent, sum(ln(amount)) AS logs, max(clock) AS last_clock
            FROM {TABLE} GROUP BY ALL)
        SELECT account_id, moment, epoch(moment) AS account_counted, last_clock,
               paid::DOUBLE AS paid_1h, (sum(paid) OVER day)::DOUBLE AS paid_24h,
               (sum(paid) OVER week)::DOUBLE AS paid_7d,
               spent AS spent_1h, sum(spent) OVER day AS spent_24h, sum(spent) OVER week AS spent_7d,
               sum(logs) OVER week / sum(paid) OVER week AS account_level
        FROM hours {_WINDOWS.format(key="account_id")}""",
    "merchant_hours": f"""
        WITH hours AS (
            SELECT merchant_id, date_trunc('hour', moment) + INTERVAL 1 HOUR AS moment, count(*) AS sold,
                   sum(ln(amount)) AS logs
            FROM {TABLE} GROUP BY ALL)
        SELECT merchant_id, moment, epoch(moment) AS merchant_counted, sold::DOUBLE AS sold_1h,
               (sum(sold) OVER day)::DOUBLE AS sold_24h, (sum(sold) OVER week)::DOUBLE AS sold_7d,
               sum(logs) OVER week / sum(sold) OVER week AS merchant_level
        FROM hours {_WINDOWS.format(key="merchant_id")}""",
    "device_hours": f"""
        WITH seen AS (
            SELECT device_id, account_id, min(date_trunc('hour', moment)) + INTERVAL 1 HOUR AS moment
            FROM {TABLE} GROUP BY device_id, account_id),
        hours AS (SELECT device_id, moment, count(*) AS met FROM seen GROUP BY ALL)
        SELECT device_id, moment,
               (sum(met) OVER (PARTITION BY device_id ORDER BY moment))::DOUBLE AS device_accounts
        FROM hours""",
}
"""What is counted, as queries over the table of transactions; see `counted_since`."""


def counted_since(group: str, since: str = "") -> str:
    """Return the query for the rows of a group; only those that are true since a time, if one is given."""
    if not since:
        return COUNTED[group].strip()
    query = COUNTED[group]
    if group != "device_hours":  # where a device was first seen may lie far back; windows are a week long
        query = query.replace(f"FROM {TABLE}", f"FROM {TABLE} WHERE moment >= TIMESTAMPTZ '{since}' - INTERVAL 8 DAYS")
    return f"SELECT * FROM ({query}) WHERE moment > TIMESTAMPTZ '{since}'"


def make_groups() -> dict[str, features.Group]:
    """Return the groups, which are made if they are not there."""
    words = {
        "accounts": "Where customers live",
        "account_hours": "What accounts paid in the last hour, day and week; counted every hour",
        "merchant_hours": "What merchants sold in the last hour, day and week; counted every hour",
        "device_hours": "How many accounts were seen on a device so far; counted every hour",
    }
    return {
        name: features.create_group(
            name, key=key, event_time="moment", online=True, description=words[name], tags=("fraud",)
        )
        for name, key in GROUPS.items()
    }


def make_view() -> features.View:
    """Return the view: looked up by account, merchant and device, and computed with what the payment brings."""
    looked_up = [
        *("home_x", "home_y"),
        *("account_counted", "last_clock", "paid_1h", "paid_24h", "paid_7d"),
        *("spent_1h", "spent_24h", "spent_7d", "account_level"),
        *("merchant_counted", "sold_1h", "sold_24h", "sold_7d", "merchant_level", "device_accounts"),
    ]
    return features.create_view(
        VIEW, features=looked_up, label="is_fraud", on_demand=SIGNALS, description="What a fraud model takes"
    )


def amount_size(amount: Array) -> Array:
    return np.log(amount)


def amount_unusual(amount: Array, account_level: Array) -> Array:
    return _known(np.log(amount) - account_level)


def amount_at_merchant(amount: Array, merchant_level: Array) -> Array:
    return _known(np.log(amount) - merchant_level)


def distance_home(x: Array, y: Array, home_x: Array, home_y: Array) -> Array:
    return np.log1p(_known(np.hypot(x - home_x, y - home_y)))


def hour_across(clock: Array) -> Array:
    return np.sin(_angle(clock))


def hour_along(clock: Array) -> Array:
    return np.cos(_angle(clock))


def since_last(clock: Array, last_clock: Array) -> Array:
    return np.log1p(_known(clock - last_clock, 14 * 86_400.0).clip(0) / 3600)


def account_last_hour(clock: Array, account_counted: Array, paid_1h: Array) -> Array:
    return np.log1p(_young(paid_1h, clock - account_counted, 3_600))


def account_last_day(clock: Array, account_counted: Array, paid_24h: Array) -> Array:
    return np.log1p(_young(paid_24h, clock - account_counted, 86_400))


def account_last_week(clock: Array, account_counted: Array, paid_7d: Array) -> Array:
    return np.log1p(_young(paid_7d, clock - account_counted, 7 * 86_400))


def spent_last_hour(clock: Array, account_counted: Array, spent_1h: Array) -> Array:
    return np.log1p(_young(spent_1h, clock - account_counted, 3_600))


def spent_share_of_day(clock: Array, account_counted: Array, spent_24h: Array, spent_7d: Array) -> Array:
    age = clock - account_counted
    return _young(spent_24h, age, 86_400) / (_young(spent_7d, age, 7 * 86_400) + 1)


def merchant_last_day(clock: Array, merchant_counted: Array, sold_24h: Array) -> Array:
    return np.log1p(_young(sold_24h, clock - merchant_counted, 86_400))


def merchant_rush(clock: Array, merchant_counted: Array, sold_1h: Array, sold_7d: Array) -> Array:
    age = clock - merchant_counted
    return np.log1p(_young(sold_1h, age, 3_600)) - np.log1p(_young(sold_7d, age, 7 * 86_400) / 168)


def device_is_own(account_id: Array, device_id: Array) -> Array:
    return np.asarray(device_id // 2 == account_id, dtype=np.float64)


def device_shared(device_accounts: Array) -> Array:
    return np.log1p(_known(device_accounts))


SIGNALS = {
    function.__name__: function
    for function in (
        *(amount_size, amount_unusual, amount_at_merchant, distance_home, hour_across, hour_along, since_last),
        *(account_last_hour, account_last_day, account_last_week, spent_last_hour, spent_share_of_day),
        *(merchant_last_day, merchant_rush, device_is_own, device_shared),
    )
}
"""What models take, by name and in order."""

PAYMENT = ["account_id", "merchant_id", "device_id", "amount", "x", "y", "clock"]
"""What a request brings: three keys, and what is known of the payment itself."""


def _known(values: Array, otherwise: float = 0.0) -> Array:
    """Return values, with a number for those that are not known: a new account, a merchant without sales."""
    return np.asarray(np.nan_to_num(values, nan=otherwise))


def _young(counted: Array, age_s: Array, window_s: float) -> Array:
    """Return what was counted in a window, or nothing if the window has passed since."""
    return np.where(_known(age_s, np.inf) < window_s, _known(counted), 0.0)


def _angle(clock: Array) -> Array:
    return 2 * np.pi * (clock % 86_400) / 86_400
