"""Coding assistants: a real client of the protocol, over pipes, and every line that a client could send."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.remote.commands.parsing import parse
from cargobike.remote.commands.rules import allowed
from cargobike.remote.mcp.protocol import VERSIONS, Cancel, Protocol, ToolCall
from cargobike.remote.mcp.tools import LISTS, READS, call_tool, shortened, tools_for
from support.remote_server import TOKEN, served
from support.web_project import LIVELY, sample_project

mcp = pytest.importorskip("mcp")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectFolder:
    return sample_project(tmp_path_factory.mktemp("assisted") / ".cargobike")


@pytest.fixture(scope="module")
def server(project: ProjectFolder) -> Iterator[str]:
    with served(project) as address:
        yield address


def _talk(arguments: list[str], cwd: Path, talk: Callable[[Any], Awaitable[None]], **variables: str) -> None:
    """Have the official client start our server, shake hands, and talk with it."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def session() -> None:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "cargobike.cli", *arguments],
            cwd=str(cwd),
            env={**os.environ, **variables},
        )
        async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as client:
            shaken = await client.initialize()
            assert shaken.server_info.name == "cargobike"
            assert shaken.protocol_version in VERSIONS
            await talk(client)

    asyncio.run(asyncio.wait_for(session(), 240))


async def _called(client: Any, tool: str, **arguments: Any) -> tuple[str, bool]:
    result = await client.call_tool(tool, arguments)
    return result.content[0].text, bool(result.is_error)


def test_an_assistant_lists_reads_and_explains(project: ProjectFolder, tmp_path: Path) -> None:
    async def talk(client: Any) -> None:
        names = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"list_objects", "search", "read_object", "explain_failure", "compare_experiments"} <= set(names)
        assert not {"launch_experiment", "run_command"} & set(names)
        assert all(tool.annotations.read_only_hint for tool in names.values())
        listed, is_error = await _called(client, "list_objects", kind="experiments")
        assert (LIVELY in listed, is_error) == (True, False)
        read, _ = await _called(client, "read_object", kind="experiment", name=LIVELY)
        assert json.loads(read)["id"] == LIVELY
        missing, is_error = await _called(client, "read_object", kind="model", name="digits")
        assert ("digits" in missing, is_error) == (True, True)
        wrong, is_error = await _called(client, "list_objects", kind="bicycles")
        assert ("bicycles" in wrong, is_error) == (True, True)
        with pytest.raises(mcp.MCPError, match="no tool 'run_command'"):
            await client.call_tool("run_command", {"arguments": ["rm", "last"]})

    _talk(["--project", str(project.root), "mcp"], tmp_path, talk)


def test_an_assistant_launches_on_a_server_if_that_is_allowed(server: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "def main(x):\n    if x < 0:\n        raise ValueError('below zero')\n    return x\n"
    )

    async def talk(client: Any) -> None:
        ran, is_error = await _called(
            client, "launch_experiment", function="train.py:main", params={"x": 7}, workers=0, name="assisted"
        )
        assert not is_error, ran
        ended, _ = await _called(client, "follow_command", command="command-1", wait_s=60)
        assert "exit code 0" in ended
        assert "Best: 7" in ended
        await _called(client, "launch_experiment", function="train.py:main", params={"x": -1}, workers=0, name="broken")
        await _called(client, "follow_command", command="command-2", wait_s=60)
        why, is_error = await _called(client, "explain_failure", experiment="broken")
        assert ("below zero" in why, is_error) == (True, False), why
        refused, is_error = await _called(client, "run_command", arguments=["rm", "last", "--yes"])
        assert (is_error, "needs the role 'administer'" in refused) == (True, True)

    _talk(["mcp", "--server", server, "--allow", "run"], tmp_path, talk, CARGOBIKE_TOKEN=TOKEN)


def test_every_tool_is_made_of_commands_that_are_declared_for_its_role() -> None:
    for line in LISTS.values():
        assert allowed(list(line), "read").role == "read"
    for line in READS.values():
        assert allowed([*line, "--json", "--", "a-name"], "read").role == "read"
    assert set(parse(["show", "--all", "--json", "--", "last"]).values) == {"everything", "as_json", "experiment"}


def test_tools_grow_with_the_role() -> None:
    read, run = tools_for("read"), tools_for("run")
    assert all(tool.role == "read" for tool in read.values())
    assert set(run) - set(read) == {
        *("launch_experiment", "launch_pipeline", "follow_command", "cancel_command", "run_command")
    }
    for tool in run.values():
        schema = tool.described()["inputSchema"]
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)


def test_wrong_arguments_say_what_a_tool_takes() -> None:
    with pytest.raises(InvalidInputError, match="It takes kind, name"):
        call_tool(tools_for("read")["read_object"], {"kind": "model"}, None, None)  # type: ignore[arg-type]


def test_long_texts_keep_their_ends() -> None:
    assert shortened("x" * 10) == "x" * 10
    text = shortened("a" * 50_000 + "b" * 50_000)
    assert (text[0], text[-1], "40000 characters left out" in text) == ("a", "b", True)


@pytest.fixture
def protocol() -> Protocol:
    return Protocol([tool.described() for tool in tools_for("read").values()], "words")


def _line(method: str, request: object = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request, "method": method, "params": params}).encode()


def test_versions_are_agreed_upon(protocol: Protocol) -> None:
    for wanted, agreed in [*((version, version) for version in VERSIONS), ("1999-01-01", VERSIONS[-1])]:
        reply = protocol.handle(_line("initialize", protocolVersion=wanted))
        assert isinstance(reply, dict)
        assert reply["result"]["protocolVersion"] == agreed


def test_calls_and_what_cancels_them(protocol: Protocol) -> None:
    call = protocol.handle(_line("tools/call", "a", name="search", arguments={"words": "x"}))
    assert call == ToolCall("a", "search", {"words": "x"})
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}}
    assert protocol.handle(json.dumps(cancel).encode()) == Cancel("a")
    for method, code in (("server/discover", -32601), ("tools/call", -32602)):
        reply = protocol.handle(_line(method))
        assert isinstance(reply, dict)
        assert reply["error"]["code"] == code


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0", "1.0", None])},
    optional={
        "id": _JSON,
        "method": st.sampled_from(["initialize", "ping", "tools/call", "notifications/cancelled", "x", 3, None]),
        "params": _JSON,
        "result": _JSON,
    },
)


@given(st.binary(max_size=60) | _MESSAGES.map(lambda message: json.dumps(message).encode()))
def test_whatever_arrives_gets_one_reply_or_none(line: bytes) -> None:
    outcome = Protocol([tool.described() for tool in tools_for("read").values()], "words").handle(line)
    assert outcome is None or isinstance(outcome, (dict, ToolCall, Cancel))
    if isinstance(outcome, dict):
        assert ("result" in outcome) != ("error" in outcome)
