"""A module whose functions another Python can import by name."""


def triple(number: float) -> float:
    return 3 * number
