"""Monitors of a project elsewhere."""

from __future__ import annotations

from cargobike.monitoring.pages.answers import AlarmAnswer, ErrorPage, MonitorDetails, MonitorPage, WindowPage
from cargobike.remote.rooms.commands import asked
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

    def watch(
        self, name: str, *, reference: str = "", window: str = "", alarm: str = "", timeout_s: float = 120.0
    ) -> MonitorDetails:
        """Watch a deployment from now on, or go on with a monitor that was stopped.

        Args:
            name: The deployment, or the monitor.
            reference: What is usual: a table or a training dataset; by default what the model was trained on.
            window: How many rows, or how long: `1000`, `1h`.
            alarm: How many unusual windows of how many: `3 of 5`.
            timeout_s: How long it may take until it watches.
        """
        body = {"name": name, "reference": reference, "window": window, "alarm": alarm}
        asked(self._connection, ["monitors"], body, timeout_s)
        return self.monitor(name)

    def stop(self, name: str, *, timeout_s: float = 120.0) -> MonitorDetails:
        """End the watcher of a monitor; it can be started again."""
        asked(self._connection, ["monitors", name, "stop"], {}, timeout_s)
        return self.monitor(name)
