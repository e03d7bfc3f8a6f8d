"""The board on which members of a gang publish small values for each other. Pure: messages in, answers out."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from cargobike.core.running.member import Role
from cargobike.experiments.scheduling.events import Run
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.trial.gang import chosen_members
from cargobike.experiments.trial.messages import Gathered, Membership, Published, Wanted

_SECRET_BYTES = 32

Answers = list[tuple[str, Gathered]]


@dataclass(slots=True)
class _Notice:
    """The values under one name by member, the workers that wait for them, and how many need them no more."""

    values: dict[int, bytes] = field(default_factory=dict)
    waiting: dict[str, Wanted] = field(default_factory=dict)
    done: int = 0


@dataclass(slots=True)
class _Post:
    """The board of one attempt."""

    trial: int
    attempt: int
    roles: Sequence[str]
    members: dict[str, int]
    notices: dict[str, _Notice] = field(default_factory=dict)


class Board:
    """Keeps one post for each running attempt; a worker's next attempt replaces it."""

    def __init__(self) -> None:
        self._posts: dict[str, _Post] = {}

    def open(self, command: Run, plan: Plan) -> list[Membership]:
        """Open a post for an attempt; returns the membership of each worker."""
        members = memberships(command, plan)
        numbers = {worker: index for index, worker in enumerate(command.workers)}
        post = _Post(command.trial, command.attempt, members[0].roles, numbers)
        for worker in command.workers:
            self._posts[worker] = post
        return members

    def take(self, worker: str, trial: int, attempt: int, message: Published | Wanted) -> Answers:
        """Handle a message of an attempt; returns the answers that are due now, with the workers they are for."""
        post = self._posts.get(worker)
        if post is None or (post.trial, post.attempt) != (trial, attempt):
            return []
        notice = post.notices.setdefault(message.name, _Notice())
        if isinstance(message, Published):
            notice.values[post.members[worker]] = message.value
        elif message.at_once:
            notice.waiting.pop(worker, None)
            return [(worker, self._gathered(post, message, notice))]
        else:
            notice.waiting[worker] = message
        return self._answers(post, message.name, notice)

    def _answers(self, post: _Post, name: str, notice: _Notice) -> Answers:
        answers: Answers = []
        for worker, wanted in list(notice.waiting.items()):
            members = chosen_members(post.roles, wanted.of)
            if all(member in notice.values for member in members):
                del notice.waiting[worker]
                notice.done += wanted.last
                answers.append((worker, self._gathered(post, wanted, notice)))
                if notice.done == len(members):
                    del post.notices[name]
        return answers

    def _gathered(self, post: _Post, wanted: Wanted, notice: _Notice) -> Gathered:
        members = chosen_members(post.roles, wanted.of)
        values = [notice.values.get(member) for member in members]
        return Gathered(wanted.name, values)


def memberships(command: Run, plan: Plan) -> list[Membership]:
    """Return the membership of each worker of a gang, in their order; the secret is made for this attempt alone."""
    ranks = len(command.workers) - command.servers
    roles = (plan.roles or ("worker",) * ranks) + (Role.SERVER,) * command.servers
    secret = secrets.token_bytes(_SECRET_BYTES)
    on_host: dict[str, int] = {}
    local_ranks: list[int] = []
    for host in command.hosts[:ranks]:
        local_ranks.append(on_host.get(host, 0))
        on_host[host] = local_ranks[-1] + 1
    return [
        Membership(
            index=index,
            roles=roles,
            hosts=command.hosts,
            local_rank=local_ranks[index] if index < ranks else 0,
            local_world_size=on_host.get(command.hosts[index], 0),
            secret=secret,
            stall_timeout_s=plan.stall_timeout_s,
        )
        for index in range(len(command.workers))
    ]
