"""Many callers at once, replicas that are killed and come back: every caller gets its own answers, none is lost."""

from __future__ import annotations

import asyncio
import random

import httpx
import pytest

from cargobike.serving.specification import Limits
from support.served import serving

CALLERS = 16
REQUESTS = 25


@pytest.mark.parametrize("protocol", ["plain", "v1", "v2"])
def test_answers_are_never_mixed_up(protocol: str) -> None:
    with serving("identity", replicas=2, limits=Limits(batch=16)) as deployment:
        if protocol == "plain":
            deployment.start_replica(3)
        rng = random.Random(protocol)
        seen: list[int] = []

        async def call(number: int, client: httpx.AsyncClient) -> None:
            for turn in range(REQUESTS):
                size = rng.choice([1, 1, 1, 2, 5, 40])
                rows = [1_000_000 * (number + 1) + 1000 * turn + place for place in range(size)]
                assert await ask(client, protocol, rows) == rows
                seen.extend(rows)
                if protocol == "plain" and number == 0 and turn == REQUESTS // 2:
                    deployment.kill_replica(1)

        async def run() -> None:
            limits = httpx.Limits(max_connections=CALLERS)
            async with httpx.AsyncClient(base_url=deployment.url, timeout=30, limits=limits) as client:
                await asyncio.gather(*(call(number, client) for number in range(CALLERS)))

        asyncio.run(run())
        assert len(seen) == len(set(seen)) >= CALLERS * REQUESTS


async def ask(client: httpx.AsyncClient, protocol: str, rows: list[int]) -> object:
    if protocol == "plain":
        answer = await client.post("/predict", json=rows)
        return answer.json()
    if protocol == "v1":
        return (await client.post("/v1/models/shop:predict", json={"instances": rows})).json()["predictions"]
    tensor = {"name": "id", "shape": [len(rows)], "datatype": "INT64", "data": rows}
    answer = await client.post("/v2/models/shop/infer", json={"inputs": [tensor]})
    return answer.json()["outputs"][0]["data"]
