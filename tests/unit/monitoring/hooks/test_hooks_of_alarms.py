from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.monitoring.asking.choices import read_hooks
from cargobike.monitoring.facts import AlarmRaised, Hooks, HookTold, Moved
from cargobike.monitoring.hooks.telling import Teller
from support.alarm_servers import mail_server, webhook_server

ALARM = AlarmRaised(
    at=1.0,
    id="alarm-1",
    kind="drift",
    window=4,
    windows=(3, 4),
    since=0.5,
    first_at=0.7,
    last_at=0.9,
    model_version=2,
    rows=100,
    moved=(Moved(feature="age", statistic="mean", size=0.4, probability=0.001, reference="mean 40", now="mean 44"),),
    text="digits drifted: age;\n$(touch hostile) `ls`",
)


def tell(hooks: Hooks, times: int = 1) -> list[HookTold]:
    """Tell of an alarm; return what became of it."""
    teller = Teller("digits", "digits", hooks, pause_s=0.01)
    teller.tell(ALARM)
    told: list[HookTold] = []
    give_up_at = time.monotonic() + 30
    while len(told) < times and time.monotonic() < give_up_at:
        told += teller.told(now=2.0)
        time.sleep(0.01)
    teller.close(10)
    assert teller._thread is None or not teller._thread.is_alive()
    return told


def test_an_address_gets_json_and_its_secret_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_KEY", "s3cret")
    with webhook_server() as posted:
        told = tell(Hooks(webhook=posted.url + "/hook?key=${HOOK_KEY}"))
    assert told == [HookTold(at=2.0, alarm="alarm-1", hook="webhook")]
    assert posted.paths == ["/hook?key=s3cret"]
    (body,) = posted.bodies
    assert (body["monitor"], body["alarm"]["id"], body["alarm"]["moved"][0]["feature"]) == ("digits", "alarm-1", "age")


def test_an_address_is_tried_again_and_redirects_are_not_followed() -> None:
    with webhook_server() as posted:
        posted.statuses = [503, 204]
        assert tell(Hooks(webhook=posted.url))[0].error == ""
        posted.statuses = [302] * 3
        assert tell(Hooks(webhook=posted.url))[0].error == "127.0.0.1 answered with status 302"
        assert len(posted.bodies) == 5


def test_failures_are_told_without_secrets_and_never_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_KEY", "s3cret")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    (told,) = tell(Hooks(webhook=f"http://{address}/${{HOOK_KEY}}"))
    assert "refused" in told.error
    assert "s3cret" not in told.error
    (told,) = tell(Hooks(webhook="http://127.0.0.1/${NOT_SET}"))
    assert told.error == "The environment variable NOT_SET is not set where the monitor runs."
    (told,) = tell(Hooks(email="team@example.org", smtp=address))
    assert "refused" in told.error


def test_an_inbox_gets_a_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as mailed:
        assert tell(Hooks(email="team@example.org", smtp=mailed.address))[0].error == ""
        monkeypatch.setenv("CARGOBIKE_SMTP_USER", "me@example.org")
        monkeypatch.setenv("CARGOBIKE_SMTP_PASSWORD", "s3cret")
        error = tell(Hooks(email="team@example.org", smtp=mailed.address))[0].error
        assert error == "127.0.0.1 does not encrypt; the password is not sent"
    (mail,) = mailed.mails
    assert mailed.receivers == ["rcpt TO:<team@example.org>"]
    assert "Subject: [cargobike] digits: digits drifted: age; $(touch hostile) `ls`" in mail.replace("\r\n ", " ")
    assert "- age: mean 0.4; mean 40 -> mean 44" in mail
    assert "cargobike monitor ack digits alarm-1" in mail


def test_a_program_gets_the_alarm_on_its_standard_input(tmp_path: Path) -> None:
    program = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())"
    target = tmp_path / "told; touch hostile"
    told = tell(Hooks(command=(sys.executable, "-c", program, str(target))))
    assert told[0].error == ""
    assert json.loads(target.read_text())["alarm"]["text"] == ALARM.text
    assert not list(tmp_path.glob("hostile"))
    (failed,) = tell(Hooks(command=(sys.executable, "-c", "raise SystemExit('no such room')")))
    assert failed.error.endswith("ended with code 1: no such room")


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        (Hooks(webhook="file:///etc/passwd"), "is no address that JSON can be posted to"),
        (Hooks(webhook="ftp://host/x"), "is no address that JSON can be posted to"),
        (Hooks(email="team"), "email='team' is no address"),
        (Hooks(email="a@b, c@d"), "is no address"),
        (Hooks(email="a@b", smtp="mail:smtp"), "smtp='mail:smtp' is no server"),
        (Hooks(command=("no-such-program-here",)), "There is no program 'no-such-program-here' here"),
    ],
)
def test_hooks_that_cannot_be_told_are_refused(hooks: Hooks, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words.replace("(", r"\(")):
        read_hooks(hooks)
