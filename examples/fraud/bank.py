"""A bank that does not exist: its customers, the merchants they go to, and the rings that steal from them.

Everything is drawn from one seed with NumPy, as whole columns, so that two million transactions take seconds. A `Bank`
delivers days: honest transactions, which follow the habits of customers, and fraud, which is the work of rings. A ring
has a few merchants and a few devices of its own, and empties many accounts through them in some days.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

FIRST_DAY = datetime(2025, 9, 1, tzinfo=UTC)
DAY_S, HOUR_S = 86_400, 3_600
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

CITIES, CATEGORIES, FAVOURITES = 8, 6, 12
OWN_DEVICES = 2
NEW_PHONES = 1_000_000_000
"""Ids of phones that were bought lately begin here, above those of all other devices."""


@dataclass(frozen=True)
class Habits:
    """How customers and rings behave; both may change.

    Attributes:
        prices: What things cost, compared with the first day.
        away: The share of payments at merchants far from home.
        late: By how many hours customers live later than at first.
        borrowed: The share of payments on a device that others use as well: a shop's, a friend's.
        renewed: The share of customers who have bought a new phone, which the bank does not know as theirs.
        rings_a_day: How many rings there are on a day besides the first, for each 100,000 transactions of it.
        victims: How many accounts a ring empties.
        theft: How much larger a theft is than what the account usually pays.
        night: The share of thefts that happen at night.
        devices: How many devices a ring has.
        hijacked: The share of thefts on the victim's own device.
        near: Whether rings pay near the homes of their victims.
    """

    prices: float = 1.0
    away: float = 0.05
    late: float = 0.0
    borrowed: float = 0.06
    renewed: float = 0.0
    rings_a_day: float = 8.0
    victims: int = 18
    theft: float = 2.5
    night: float = 0.7
    devices: int = 3
    hijacked: float = 0.25
    near: bool = False


USUAL = Habits()
CHANGED = replace(USUAL, prices=1.3, away=0.3, late=2.0, borrowed=0.2, renewed=0.1, theft=4.0, night=0.5)
"""Customers travel, live later, pay more, some with new phones; thieves work by day as well, and steal more at once."""


class Bank:
    """Customers, merchants, and what happens on each day.

    Args:
        rows_a_day: About how many honest transactions a day has.
        seed: The same seed gives the same bank, and the same days.
    """

    def __init__(self, rows_a_day: int, seed: int = 7) -> None:
        random = np.random.default_rng([seed, 0])
        self.rows_a_day, self.seed = rows_a_day, seed
        self.accounts = max(200, rows_a_day // 3)
        self.merchants = max(80, rows_a_day // 30)
        self.public_devices = self.accounts // 8
        self.cities = random.uniform(10, 90, (CITIES, 2))
        self._home_city = random.choice(CITIES, self.accounts, p=_falling(CITIES))
        self.homes = self.cities[self._home_city] + random.normal(0, 4, (self.accounts, 2))
        self._activity = _shares(random.lognormal(0, 0.7, self.accounts))
        self._wealth = random.normal(0, 0.5, self.accounts)
        self._awake = random.normal(14, 2.5, self.accounts)
        self._city_of_merchant = random.choice(CITIES, self.merchants, p=_falling(CITIES))
        self.shops = self.cities[self._city_of_merchant] + random.normal(0, 5, (self.merchants, 2))
        self._price = np.linspace(2.0, 5.0, CATEGORIES)[random.integers(0, CATEGORIES, self.merchants)]
        self._popularity = _shares(random.pareto(1.2, self.merchants) + 0.05)
        self._favourites = self._choose_favourites(random)
        self._keeps_phone = np.random.default_rng([seed, 3]).random(self.accounts)

    def customers(self) -> pa.Table:
        """Return what the bank knows of each account."""
        return pa.table(
            {
                "account_id": np.arange(self.accounts),
                "moment": _times(np.full(self.accounts, -1.0)),
                "home_x": self.homes[:, 0],
                "home_y": self.homes[:, 1],
            }
        )

    def days(self, first: int, last: int, habits: Habits = USUAL) -> pa.Table:
        """Return all transactions of some days, `first` and `last` included, in the order of time."""
        pieces = [part for day in range(first, last + 1) for part in self._day(day, habits)]
        columns = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        order = np.argsort(columns["clock"], kind="stable")
        columns = {name: values[order] for name, values in columns.items()}
        number = first * 10_000_000 + np.arange(len(order))
        return pa.table({"transaction_id": number, "moment": _times(columns["clock"]), **columns})

    def _day(self, day: int, habits: Habits) -> list[dict[str, np.ndarray]]:
        # Honest payments and thefts have streams of their own: what rings do changes nothing for customers.
        honest = self._payments(day, habits, np.random.default_rng([self.seed, 1, day]))
        return [honest, *self._thefts(day, habits, np.random.default_rng([self.seed, 2, day]))]

    def _payments(self, day: int, habits: Habits, random: np.random.Generator) -> dict[str, np.ndarray]:
        rows = int(random.poisson(self.rows_a_day))
        account = random.choice(self.accounts, rows, p=self._activity)
        merchant = self._favourites[account, random.integers(0, FAVOURITES, rows)]
        is_away = random.random(rows) < habits.away
        merchant[is_away] = random.choice(self.merchants, int(is_away.sum()), p=self._popularity)
        hour = (self._awake[account] + habits.late + random.normal(0, 3.2, rows)) % 24
        level = self._price[merchant] + self._wealth[account] + random.normal(0, 0.6, rows)
        device = self._own_device(account, random.random(rows) < 0.15, habits)
        is_borrowed = random.random(rows) < habits.borrowed
        device[is_borrowed] = random.integers(0, self.public_devices, int(is_borrowed.sum()))
        device[is_borrowed] += self.accounts * OWN_DEVICES
        return self._columns(
            clock=day * DAY_S + hour * HOUR_S,
            account=account,
            merchant=merchant,
            device=device,
            amount=np.exp(level) * habits.prices,
            place=self.shops[merchant] + random.normal(0, 0.3, (rows, 2)),
            is_fraud=False,
        )

    def _thefts(self, day: int, habits: Habits, random: np.random.Generator) -> list[dict[str, np.ndarray]]:
        rings = 1 + int(random.poisson(habits.rings_a_day * self.rows_a_day / 100_000))
        return [self._ring(day, day * 100 + ring, habits, random) for ring in range(rings)]

    def _ring(self, day: int, ring: int, habits: Habits, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Return what one ring steals on a day: many victims, few merchants, few devices."""
        victims = random.choice(self.accounts, habits.victims, replace=False)
        account = np.repeat(victims, random.integers(1, 5, habits.victims))
        rows = len(account)
        shops = random.choice(self.merchants, 3, replace=False)
        merchant = random.choice(shops, rows)
        start = random.uniform(0, 4) if random.random() < habits.night else random.uniform(8, 18)
        hour = (start + random.exponential(1.5, rows)) % 24
        level = self._price[merchant] + self._wealth[account] + random.normal(0, 0.5, rows)
        place = self.homes[account] if habits.near else self.shops[merchant]
        first_device = self.accounts * OWN_DEVICES + self.public_devices + ring * 20
        device = first_device + random.integers(0, habits.devices, rows)
        is_hijacked = random.random(rows) < habits.hijacked
        device[is_hijacked] = self._own_device(account, np.zeros(rows, dtype=bool), habits)[is_hijacked]
        return self._columns(
            clock=day * DAY_S + hour * HOUR_S,
            account=account,
            merchant=merchant,
            device=device,
            amount=np.exp(level) * habits.theft * habits.prices,
            place=place + random.normal(0, 2, (rows, 2)),
            is_fraud=True,
        )

    def _own_device(self, account: Numbers, is_second: np.ndarray, habits: Habits) -> Numbers:
        """Return the devices that accounts pay with; the first of each may have been replaced."""
        is_new = (self._keeps_phone[account] < habits.renewed) & ~is_second
        return np.where(is_new, NEW_PHONES + account, account * OWN_DEVICES + is_second)

    def _columns(
        self,
        *,
        clock: Floats,
        account: Numbers,
        merchant: Numbers,
        device: Numbers,
        amount: Floats,
        place: Floats,
        is_fraud: bool,
    ) -> dict[str, np.ndarray]:
        return {
            "clock": np.floor(clock) + FIRST_DAY.timestamp(),
            "account_id": account.astype(np.int64),
            "merchant_id": merchant.astype(np.int64),
            "device_id": np.asarray(device, dtype=np.int64),
            "amount": np.round(np.maximum(amount, 0.5), 2),
            "x": place[:, 0],
            "y": place[:, 1],
            "is_fraud": np.full(len(account), is_fraud),
        }

    def _choose_favourites(self, random: np.random.Generator) -> Numbers:
        """Draw the merchants that each account goes to, all in its own city."""
        favourites = np.empty((self.accounts, FAVOURITES), dtype=np.int64)
        for city in range(CITIES):
            residents = np.flatnonzero(self._home_city == city)
            shops = np.flatnonzero(self._city_of_merchant == city)
            shops = shops if len(shops) else np.arange(self.merchants)
            share = _shares(self._popularity[shops])
            favourites[residents] = random.choice(shops, (len(residents), FAVOURITES), p=share)
        return favourites


def _shares(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())


def _falling(count: int) -> Floats:
    return _shares(1.0 / np.arange(1, count + 1))


def _times(clock: Floats) -> pa.Array:
    """Return seconds as times in UTC; those before the first day are counted from it."""
    seconds = np.where(clock < 0, clock + FIRST_DAY.timestamp(), clock)
    return pa.array((seconds * 1e6).astype(np.int64), pa.timestamp("us", tz="UTC"))
