"""Messages against the schema, servers of an editor, and hostile clients."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from acp import schema

from phoenix_tui.acp.connection import LONGEST_LINE, MOST_NESTED
from tests.support.acp_client import Editor, Opened, connected, option, replies
from tests.support.cli import ROOT, Phoenix, phoenix_in
from tests.support.journeys import Claude, calls, says
from tests.support.waiting import PATIENCE, poll

ASK = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
BAD_LINES = (
    (b"{", -32700),
    (b"\xff\xfe", -32700),
    (b"[" * 100_000, -32700),
    (b"9" * 10_000, -32700),
    (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, -32700),
    (b"[" + b"{}," * MOST_NESTED + b"{}]", -32700),
    (b'{"text":"' + b"x" * LONGEST_LINE + b'"}', -32700),
    (b"[]", -32600),
    (b'"text"', -32600),
    (b"{}", -32600),
    (b'{"id":{},"result":1}', -32600),
    (b'{"id":[1],"method":"initialize"}', -32600),
    (b'{"id":1,"method":5}', -32600),
    (b'{"id":7,"error":"no"}', -32600),
    (b'{"id":3,"method":"initialize","params":[1]}', -32602),
    (b'{"id":3,"method":"session/prompt","params":{"sessionId":5,"prompt":[]}}', -32602),
    (b'{"id":3,"method":"session/new","params":{"cwd":"\\ud800","mcpServers":[]}}', -32700),
    (b'{"id":3,"method":"session/new","params":{"cwd":"/a\\u0000b","mcpServers":[]}}', -32602),
    (b'{"id":3,"method":"session/list","params":{"cursor":"-1"}}', -32602),
    (b'{"id":3,"method":"session/set_model","params":{"sessionId":1}}', -32602),
    (b'{"id":3,"method":"\\u001b[31mx","params":{}}', -32601),
    (b'{"id":3,"method":"session/load","params":{"cwd":"/","sessionId":"x","mcpServers":[]}}', -32002),
)
"""Lines that are no message or cannot be done, and the code of the error that answers each."""


class Raw:
    """The agent's process, and the lines it has written."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def send(self, line: bytes | dict[str, Any]) -> None:
        """Write a line."""
        assert self.process.stdin is not None
        self.process.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")

    async def answer(self) -> dict[str, Any]:
        """The next line."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            found: dict[str, Any] = json.loads(await self.process.stdout.readline())
            return found

    async def message(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next line that is wanted."""
        while not wanted(found := await self.answer()):
            pass
        return found

    async def response(self, number: int) -> dict[str, Any]:
        """The answer to a request."""
        return await self.message(lambda one: "method" not in one and one["id"] == number)


@asynccontextmanager
async def raw(phoenix: Phoenix) -> AsyncGenerator[Raw]:
    process = await phoenix.start("acp", stdin=asyncio.subprocess.PIPE)
    try:
        yield Raw(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_every_bad_line_is_answered_and_the_next_one_counts(tmp_path: Path) -> None:
    async with raw(phoenix_in(tmp_path)) as agent:
        for line, code in BAD_LINES:
            agent.send(line)
            answer = await agent.answer()
            assert answer["error"]["code"] == code, line[:24]
            assert "\x1b" not in answer["error"]["message"]
            agent.send(b"")
            agent.send({"jsonrpc": "2.0", "id": 99, "result": {}})
            agent.send({"jsonrpc": "2.0", "method": "nothing/known", "params": {}})
            agent.send(ASK)
            assert (await agent.answer())["result"]["protocolVersion"] == 1, line[:24]


async def test_a_line_without_an_end_takes_no_more_than_its_limit(tmp_path: Path) -> None:
    async with raw(phoenix_in(tmp_path)) as agent:
        agent.send(ASK)
        await agent.answer()
        before = psutil.Process(agent.process.pid).memory_info().rss
        assert agent.process.stdin is not None
        for _ in range(100):
            agent.process.stdin.write(b"x" * 1_000_000)
            await agent.process.stdin.drain()
        assert psutil.Process(agent.process.pid).memory_info().rss - before < 60_000_000
        agent.send(b"")
        assert (await agent.answer())["error"]["code"] == -32700


async def test_a_client_that_reads_nothing_holds_up_neither_the_end_nor_memory(tmp_path: Path) -> None:
    async with raw(phoenix_in(tmp_path)) as agent:
        assert agent.process.stdin is not None
        for number in range(20_000):
            agent.send(ASK | {"id": number})
        agent.process.stdin.close()
        assert await poll(lambda: agent.process.returncode is not None)


async def test_without_a_client_it_ends_at_once(tmp_path: Path) -> None:
    ran = await phoenix_in(tmp_path).run("acp", stdin=b"")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


async def test_a_client_that_leaves_while_the_services_open_ends_it_quietly(tmp_path: Path) -> None:
    new = {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}}
    asked = "".join(f"{json.dumps(one)}\n" for one in (ASK, new, new | {"id": 3})).encode()
    ran = await phoenix_in(tmp_path).run("acp", stdin=asked)
    assert (ran.code, ran.err) == (0, "")


async def test_a_client_that_cannot_answer_a_question_denies_it(claude: Claude) -> None:
    answers: list[dict[str, Any]] = [
        {"result": 5},
        {"result": None},
        {"result": {"outcome": {"outcome": "selected"}}},
        {"error": {"code": "x", "message": 5}},
        {"error": {"code": -32601, "message": "Method not found"}},
    ]
    said = [calls("bash", command="touch made"), says("Denied.")] * len(answers)
    phoenix, server = await claude(replies(*said))
    async with raw(phoenix) as agent:
        for number, answer in enumerate(answers):
            new, prompted = 2 * number, 2 * number + 1
            agent.send({"id": new, "method": "session/new", "params": {"cwd": str(phoenix.cwd), "mcpServers": []}})
            session = await agent.response(new)
            prompt = [{"type": "text", "text": "Go"}]
            params = {"sessionId": session["result"]["sessionId"], "prompt": prompt}
            agent.send({"id": prompted, "method": "session/prompt", "params": params})
            asked = await agent.message(lambda one: one.get("method") == "session/request_permission")
            agent.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
            assert (await agent.response(prompted))["result"] == {"stopReason": "end_turn"}, answer
            assert not (phoenix.cwd / "made").exists(), answer
    assert [one.method for one in server.requests].count("POST") == len(said)


LOADS = """
from phoenix_tui.acp.quick_schema import load_schema
load_schema()
from acp.schema import PromptRequest, TextContentBlock
from pydantic import BaseModel, ConfigDict

class Later(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)
    name: str
    '''A name.'''

read = PromptRequest.model_validate({"sessionId": "s", "prompt": [{"type": "text", "text": "Hi"}]})
print(PromptRequest.model_fields["prompt"].description, Later.model_config.get("defer_build"))
print(read.model_dump_json(by_alias=True, exclude_none=True))
try:
    PromptRequest.model_validate({"sessionId": 5, "prompt": []})
except ValueError as error:
    print(error.error_count())
"""


def test_messages_are_read_and_written_without_descriptions_and_others_are_built_as_ever() -> None:
    done = subprocess.run([sys.executable, "-c", LOADS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "None None",
        '{"sessionId":"s","prompt":[{"text":"Hi","type":"text"}]}',
        "1",
    ]


ECHO = calls("mcp__kinds__echo", text="${HOME} from the editor")


def kinds(name: str = "kinds") -> schema.McpServerStdio:
    env = [schema.EnvVariable(name="PYTHONPATH", value=str(ROOT))]
    return schema.McpServerStdio(name=name, command=sys.executable, args=["-m", "tests.support.mcp_kinds"], env=env)


def tools_of(opened: Opened, number: int = -1) -> list[str]:
    body = json.loads(opened.requests[number].body)
    return [tool["name"] for tool in body["tools"] if tool["name"].startswith("mcp__")]


async def begun(opened: Opened, *servers: Any) -> Opened:
    session = await opened.agent.new_session(cwd=str(opened.phoenix.cwd), mcp_servers=list(servers))
    return replace(opened, session_id=session.session_id)


async def test_a_server_of_the_editor_is_offered_and_called_in_its_session_alone(claude: Claude) -> None:
    editor = Editor(choose=option("allow_once"))
    phoenix, server = await claude(replies(ECHO, says("Done.")))
    async with connected(phoenix, editor=editor) as opened:
        opened = replace(opened, server=server)
        one = await begun(opened, kinds())
        assert (await one.says("Go")).stop_reason == "end_turn"
        assert "mcp__kinds__echo" in tools_of(one)
        assert "${HOME} from the editor" in json.dumps(json.loads(one.requests[-1].body)["messages"][-1])
        other = await begun(opened)
        await other.says("Go")
        assert tools_of(other) == []
    assert len(editor.asked) == 1


async def test_a_loaded_session_gets_the_servers_of_its_new_request(claude: Claude) -> None:
    phoenix, server = await claude(replies(says("Done.")))
    async with connected(phoenix) as opened:
        first = await begun(replace(opened, server=server), kinds())
        await first.says("Go")
    async with connected(phoenix) as opened:
        await opened.agent.load_session(cwd=str(phoenix.cwd), session_id=first.session_id, mcp_servers=[kinds("again")])
        await replace(opened, session_id=first.session_id, server=server).says("Go on")
        names = {name.split("__")[1] for name in tools_of(first)}
    assert names == {"again"}


async def test_values_of_an_editor_are_no_variables(claude: Claude) -> None:
    phoenix, server = await claude(replies(says("Done.")))
    async with connected(phoenix, editor=Editor(choose=option("allow_once"))) as opened:
        own = kinds()
        own.env.append(schema.EnvVariable(name="LITERAL", value="${NOT_SET_ANYWHERE}"))
        one = await begun(replace(opened, server=server), own)
        assert (await one.says("Go")).stop_reason == "end_turn"
        assert "mcp__kinds__echo" in tools_of(one)
        assert "NOT_SET_ANYWHERE" not in opened.editor.text


async def test_a_cancel_does_not_wait_for_a_server_that_never_answers(claude: Claude) -> None:
    silent = schema.McpServerStdio(name="silent", command=sys.executable, args=["-c", "input()"], env=[])
    phoenix, server = await claude(replies(says("Hi.")))
    async with connected(phoenix) as opened:
        one = await begun(replace(opened, server=server), silent)
        turn, _done = await asyncio.gather(one.says("Hi"), opened.agent.cancel(session_id=one.session_id))
        assert turn.stop_reason == "cancelled"
        assert one.requests == []


async def test_servers_that_cannot_be_used_are_named_and_the_session_works(claude: Claude) -> None:
    wrong: Sequence[Any] = (
        schema.McpServerStdio(name="gone", command="/no/such/program", args=[], env=[]),
        schema.HttpMcpServer(name="closed", type="http", url="no address", headers=[]),
        schema.AcpMcpServer(name="tunnel", type="acp", server_id="1"),
    )
    phoenix, server = await claude(replies(says("Hi.")))
    async with connected(phoenix) as opened:
        one = await begun(replace(opened, server=server), *wrong)
        assert (await one.says("Hi")).stop_reason == "end_turn"
        said = opened.editor.text
    assert all(name in said for name in ("'gone'", "'closed'", "'tunnel'"))
    assert "Traceback" not in said
