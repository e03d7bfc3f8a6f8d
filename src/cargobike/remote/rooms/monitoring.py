"""Monitors of a project elsewhere."""

from __future__ import annotations

from cargobike.monitoring.pages.answers import AlarmAnswer, ErrorPage, MonitorDetails, MonitorPage, WindowPage
from cargobike.remote.rooms.room import Room


class Monitoring(Room):
    """What `cargobike.monitoring` is for a project here."""

    def list_monitors(self, words: str = "", *, offset: int = 0, limit: int = 50) -> MonitorPage:
        """Return monitors, those with open alarms first."""
        return self._connection.get(["monitors"], MonitorPage, words=words, offset=offset, limit=limit)

    def monitor(self, name: str) -> MonitorDetails:
        """Return a monitor: what it watches, how it is doing, its alarms."""
        return self._connection.get(["monitors", name], MonitorDetails)

    def windows(self, name: str, *, offset: int = 0, limit: int = 100) -> WindowPage:
        """Return windows, the oldest first, with how unusual each feature is."""
        return self._connection.get(["monitors", name, "windows"], WindowPage, offset=offset, limit=limit)

    def errors(self, name: str) -> ErrorPage:
        """Return errors over time, where labels came."""
        return self._connection.get(["monitors", name, "errors"], ErrorPage)

    def acknowledge(self, name: str, alarm: str, note: str = "") -> AlarmAnswer:
        """Say that a person has seen an alarm."""
        return self._connection.post(["monitors", name, "alarms", alarm, "acknowledge"], AlarmAnswer, {"note": note})
