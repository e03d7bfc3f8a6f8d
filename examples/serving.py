"""Serve a model, bring in better versions while requests come, and take a bad one back.

Run it: python examples/serving.py
"""

from __future__ import annotations

import threading

from cargobike import models, serving


class House:
    """Guesses the price of a house; a model is any callable from a list of rows to a list of answers."""

    def __init__(self, per_room: float) -> None:
        self.per_room = per_room

    def __call__(self, rows: list[dict[str, float]]) -> list[float]:
        """Return one price for each row."""
        return [self.per_room * (row["rooms"] + row["garden"]) for row in rows]


class Broken(House):
    """Fails at every request."""

    def __call__(self, rows: list[dict[str, float]]) -> list[float]:
        """Raise an error."""
        raise ValueError("no prices today")


def main() -> None:
    """Register three versions, and release them in three ways."""
    for model in (House(100.0), House(120.0), Broken(0.0)):
        print(
            "registered",
            models.register("house", model, example=[{"rooms": 3.0, "garden": 0.0}] if model.per_room else None),
        )

    with serving.deploy("house", "house:1", replicas=(1, 2)) as deployment:
        print("at", deployment.url, "three rooms cost", deployment.predict({"rooms": 3.0, "garden": 0.0}))
        done = threading.Event()
        asked = threading.Thread(target=ask, args=(deployment, done))
        asked.start()
        try:
            deployment.roll("house:2")
            print("version 2 says", deployment.predict({"rooms": 3.0, "garden": 0.0}))
            deployment.rollback()
            print("version 1 again says", deployment.predict({"rooms": 3.0, "garden": 0.0}))
            deployment.roll("house:3", canary=0.2)
            while deployment.status().candidate:
                done.wait(0.1)
            print("version 3 was taken back:", deployment.status().last_error)
        finally:
            done.set()
            asked.join()
        print(deployment.status())


def ask(deployment: serving.Deployment, done: threading.Event) -> None:
    """Send requests until the end; those that meet a broken canary fail, and are not counted here."""
    while not done.is_set():
        try:
            deployment.predict({"rooms": 2.0, "garden": 1.0})
        except RuntimeError:
            continue


if __name__ == "__main__":
    main()
