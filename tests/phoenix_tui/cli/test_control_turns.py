"""Messages of a host, alone and during a run, their results and interruptions."""

from __future__ import annotations

import base64
import io
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from PIL import Image

from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import Phoenix, with_claude
from tests.support.control_host import ControlHost, Frame, hosted
from tests.support.journeys import Claude, calls, rows, says
from tests.support.loopback import Answer, serve
from tests.support.loopback_agents import never_ends
from tests.support.loopback_anthropic import TINY_PNG, refuses
from tests.support.waiting import poll

TURN = ["system/init", "assistant", "result/success"]


async def test_a_host_says_hello_and_gets_a_reply_and_a_result(tmp_path: Path) -> None:
    async with serve(says("Hello."), says("Again.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        answer = await host.ask("initialize", hooks=None)
        init, reply, result = await host.turn("Hi")
        more = await host.turn("Once more")
        code = await host.close()
    info = answer["response"]
    assert (answer["subtype"], info["hook_on_failure_supported"], info["current_permission_mode"]) == (
        "success",
        True,
        "default",
    )
    assert [model["value"] for model in info["models"]][:2] == ["default", "sonnet"]
    assert (init["model"], init["permissionMode"], init["mcp_servers"]) == ("claude-sonnet-5-5", "default", [])
    assert {"Bash", "Read", "Write", "Edit", "Glob", "Grep", "Agent"} <= set(init["tools"])
    assert (reply["message"]["content"], reply["message"]["model"]) == (
        [{"type": "text", "text": "Hello."}],
        "claude-sonnet-5-5",
    )
    assert (result["result"], result["num_turns"], result["terminal_reason"]) == ("Hello.", 1, "completed")
    assert more[-1]["result"] == "Again."
    assert (more[-1]["num_turns"], more[-1]["total_cost_usd"]) == (1, 2 * result["total_cost_usd"])
    assert host.kinds() == [*TURN, *TURN]
    assert len({UUID(one["uuid"]) for one in host.messages()}) == 6
    assert code == 0


async def test_states_surround_a_turn_and_rest_comes_after_the_result(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        await host.turn("Hi")
        await host.wait(lambda one: one.get("state") == "idle")
    told = [one.get("state") or one["type"] for one in host.frames]
    assert told == ["running", "system", "assistant", "result", "idle"]


async def test_messages_that_wait_are_answered_after_stdin_has_ended(tmp_path: Path) -> None:
    async with serve(says("One."), says("Two.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        host.say("first", uuid="u-1")
        host.say("second", uuid="u-2")
        code = await host.close()
    results = [one for one in host.messages() if one["type"] == "result"]
    assert [(one["result"], one["user_message_uuids"]) for one in results] == [("One.", ["u-1"]), ("Two.", ["u-2"])]
    assert [one["state"] for one in host.frames if "state" in one] == ["running", "idle"]
    assert code == 0


async def test_an_interruption_ends_the_turn_and_the_next_one_works(claude: Claude) -> None:
    phoenix, server = await claude(never_ends, says("Back."))
    async with hosted(phoenix, "--include-partial-messages") as host:
        host.say("Tell me a story")
        await host.wait(lambda one: one["type"] == "stream_event" and "Once" in json.dumps(one))
        answer = await host.ask("interrupt")
        result = await host.wait(lambda one: one["type"] == "result")
        more = await host.turn("And now?")
        code = await host.close()
    assert (answer["subtype"], answer["response"]) == ("success", {"still_queued": []})
    assert (result["subtype"], result["is_error"]) == ("error_during_execution", True)
    assert result["terminal_reason"] == "aborted_streaming"
    [partial] = [one for one in host.messages() if one.get("aborted")]
    assert partial["message"]["content"] == [{"type": "text", "text": "Once"}]
    assert (partial["type"], partial["message"]["model"]) == ("assistant", "claude-sonnet-5-5")
    assert "Once" not in json.dumps(json.loads(server.requests[-1].body)["messages"])
    notes = [one["message"]["content"] for one in host.messages() if one["type"] == "user"]
    assert notes == [[{"type": "text", "text": "[Request interrupted by user]"}]]
    assert more[-1]["result"] == "Back."
    assert code == 0


async def test_an_interruption_of_nothing_changes_nothing(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        assert (await host.ask("interrupt"))["response"] == {"still_queued": []}
        assert (await host.turn("Hi"))[-1]["result"] == "Hello."


async def test_mode_and_model_change_between_turns(tmp_path: Path) -> None:
    def model_of(body: object) -> object:
        return body["model"] if isinstance(body, dict) else None

    async with serve(says("One."), says("Two.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        mode = await host.ask("set_permission_mode", mode="acceptEdits")
        model = await host.ask("set_model", model="haiku")
        first = await host.turn("Hi")
        back = await host.ask("set_model", model=None)
        second = await host.turn("Hi")
        wrong = await host.ask("set_permission_mode", mode="free")
        unknown = await host.ask("set_model", model="nowhere/none")
    assert (mode["response"], model["response"]) == ({"mode": "acceptEdits"}, {"model": "claude-haiku-5-5"})
    assert (first[0]["permissionMode"], first[0]["model"]) == ("acceptEdits", "claude-haiku-5-5")
    assert (back["response"]["model"], second[0]["model"]) == ("claude-sonnet-5-5", "claude-sonnet-5-5")
    assert [model_of(json.loads(one.body)) for one in server.requests if one.method == "POST"] == [
        "claude-haiku-5-5",
        "claude-sonnet-5-5",
    ]
    status = [one for one in host.frames if one.get("subtype") == "status"]
    assert [one["permissionMode"] for one in status] == ["acceptEdits"]
    assert "There is no permission mode free" in wrong["error"]
    assert "There is no provider 'nowhere'" in unknown["error"]


async def test_an_unknown_request_is_refused_and_an_unknown_type_ignored(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        host.send({"type": "keep_alive"}, {"type": "control_request"}, {"type": "control_response", "response": []})
        answer = await host.ask("fly")
        assert (await host.turn("Hi"))[-1]["result"] == "Hello."
    assert (answer["subtype"], answer["error"]) == ("error", "Phoenix does not know the request “fly”.")


async def test_pieces_of_a_reply_name_tools_as_the_host_knows_them(claude: Claude) -> None:
    reads = calls("read_file", path="a.txt")
    phoenix, _ = await claude(reads, says("Read."))
    (phoenix.cwd / "a.txt").write_text("hello\n")
    async with hosted(phoenix, "--include-partial-messages") as host:
        frames = await host.turn("Read it")
    events = [one["event"] for one in frames if one["type"] == "stream_event"]
    starts = [one["content_block"] for one in events if one["type"] == "content_block_start"]
    assert [one.get("name") for one in starts] == ["Read", None]
    replies = [one["message"]["content"] for one in frames if one["type"] == "assistant"]
    assert [(block["type"], block.get("name")) for block in replies[0]] == [("tool_use", "Read")]
    assert all(one["session_id"] == frames[0]["session_id"] for one in frames)


async def test_messages_are_replayed_with_the_id_of_the_host(tmp_path: Path) -> None:
    flags = ("--replay-user-messages",)
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url), *flags) as host:
        frames = await host.turn("Hi", uuid="11111111-2222-4333-8444-555555555555")
    [replayed] = [one for one in frames if one["type"] == "user"]
    assert (replayed["isReplay"], replayed["uuid"], replayed["message"]["content"]) == (
        True,
        "11111111-2222-4333-8444-555555555555",
        "Hi",
    )


async def test_blocks_of_text_images_and_documents_reach_the_model(tmp_path: Path) -> None:
    image = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(TINY_PNG).decode()}
    content = [
        {"type": "text", "text": "Look"},
        {"type": "image", "source": image},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "document", "title": "Notes", "source": {"type": "text", "data": "Line one"}},
        {"type": "odd"},
        7,
    ]
    async with serve(says("A dot.")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        frames = await host.turn(content)
        [asked] = [json.loads(one.body) for one in server.requests if one.method == "POST"]
    blocks = asked["messages"][-1]["content"]
    words = "".join(block.get("text", "") for block in blocks)
    assert frames[-1]["result"] == "A dot."
    assert blocks[0]["type"] == "image"
    for part in (
        "Look",
        "Notes\n\nLine one",
        "a block of type odd",
        "a block that is no object",
        "an image was left out",
    ):
        assert part in words, part


async def test_a_failure_of_the_server_is_a_reply_and_a_result_that_say_so(tmp_path: Path) -> None:
    fails = refuses(401, "authentication_error", "invalid x-api-key")
    async with serve(fails) as server, hosted(with_claude(tmp_path, server.url)) as host:
        _, reply, result = await host.turn("Hi")
        code = await host.close()
    assert (reply["error"], reply["message"]["model"]) == ("authentication_failed", "<synthetic>")
    assert (result["subtype"], result["is_error"], result["terminal_reason"]) == ("success", True, "api_error")
    assert result["result"] == reply["message"]["content"][0]["text"]
    assert (result["api_error_status"], code) == (401, 41)


async def test_limits_of_turns_and_budget_have_their_subtypes(tmp_path: Path) -> None:
    loops = [calls("list_files", f"toolu_{number}", path=".") for number in range(4)]
    async with serve(*loops) as server, hosted(with_claude(tmp_path, server.url), "--max-turns", "2") as host:
        frames = await host.turn("Go")
        code = await host.close()
    assert (frames[-1]["subtype"], frames[-1]["terminal_reason"], code) == ("error_max_turns", "max_turns", 53)
    flags = ("--max-budget-usd", "0.00001")
    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url), *flags) as host:
        first = await host.turn("Go")
        second = await host.turn("Go on")
    assert {first[-1]["subtype"], second[-1]["subtype"]} <= {"success", "error_max_budget_usd"}
    assert second[-1]["subtype"] == "error_max_budget_usd"


async def test_an_unknown_conversation_is_a_result_before_any_answer(tmp_path: Path) -> None:
    async with serve() as server, hosted(with_claude(tmp_path, server.url), "--resume=nowhere") as host:
        host.begin("initialize", hooks=None)
        code = await host.end()
    [result] = host.frames
    assert (result["type"], result["subtype"], result["is_error"]) == ("result", "error_during_execution", True)
    assert "nowhere" in result["errors"][0]
    assert result["errors"][0] in bytes(host.err).decode()
    assert code != 0


async def test_a_conversation_is_resumed_and_forked(claude: Claude) -> None:
    phoenix, _ = await claude(says("One."), says("Two."), says("Three."))
    async with hosted(phoenix) as host:
        first = await host.turn("Hi")
    name = first[0]["session_id"]
    async with hosted(phoenix, f"--resume={name}") as host:
        second = await host.turn("Hi")
    async with hosted(phoenix, f"--resume={name}", "--fork-session") as host:
        third = await host.turn("Hi")
    assert second[0]["session_id"] == name != third[0]["session_id"]
    assert [one[-1]["result"] for one in (first, second, third)] == ["One.", "Two.", "Three."]


async def test_sigterm_ends_the_run_and_the_program(claude: Claude) -> None:
    phoenix, server = await claude(never_ends)
    async with hosted(phoenix) as host:
        host.say("Go")
        await server.wait_asked()
        host.process.send_signal(signal.SIGTERM)
        code = await host.end()
    assert code == 143
    assert host.messages()[-1]["type"] == "result"
    assert rows(phoenix, "select status from runs") == [("interrupted",)], "the host did not stop it"


FLAGS = ("--allowedTools", "Bash", "--replay-user-messages")


def waits() -> Answer:
    """A command that says that it runs, and goes on until the test lets it end."""
    return calls("bash", command="touch began; while [ ! -e go ]; do sleep 0.05; done; echo ended")


def results(host: ControlHost) -> list[Frame]:
    return [one for one in host.frames if one["type"] == "result"]


def replayed(host: ControlHost) -> list[str]:
    return [one["uuid"] for one in host.frames if one.get("isReplay")]


def queued(phoenix: Phoenix) -> int:
    """Messages in the queue of the conversation."""
    with closing(sqlite3.connect(next(phoenix.home.rglob("phoenix.db")))) as connection:
        return int(connection.execute("SELECT count(*) FROM queued_messages").fetchone()[0])


async def begins(host: ControlHost, phoenix: Phoenix) -> None:
    """Send a message whose run stands in its command."""
    host.say("Go", uuid="u-1")
    assert await poll((phoenix.cwd / "began").exists)


async def test_a_message_during_a_run_is_read_with_the_next_tool_results(claude: Claude) -> None:
    phoenix, server = await claude(waits(), says("Both."))
    async with hosted(phoenix, *FLAGS) as host:
        await begins(host, phoenix)
        host.say("Mind the tests", uuid="u-2")
        host.say("And the docs", uuid="u-3")
        assert await poll(lambda: queued(phoenix) == 2)
        (phoenix.cwd / "go").touch()
        assert await host.close() == 0
    first, second = bodies(server)
    sent = json.dumps(second["messages"])
    assert "Mind the tests" not in json.dumps(first)
    assert sent.index("ended") < sent.index("Mind the tests") < sent.index("And the docs")
    [result] = results(host)
    assert (result["result"], result["user_message_uuids"]) == ("Both.", ["u-1", "u-2", "u-3"])
    assert replayed(host) == ["u-1", "u-2", "u-3"]
    assert queued(phoenix) == 0


async def test_a_message_that_the_run_does_not_read_gets_a_turn_of_its_own(claude: Claude) -> None:
    phoenix, _ = await claude(waits(), says("First."), says("Second."))
    async with hosted(phoenix, *FLAGS) as host:
        await begins(host, phoenix)
        (phoenix.cwd / "go").touch()
        await host.wait(lambda one: one["type"] == "assistant" and "First." in json.dumps(one))
        host.say("And then?", uuid="u-2")
        assert await host.close() == 0
    assert [(one["result"], one["user_message_uuids"]) for one in results(host)] == [
        ("First.", ["u-1"]),
        ("Second.", ["u-2"]),
    ]
    assert queued(phoenix) == 0


async def test_a_message_in_the_last_reply_waits_for_its_own_turn(claude: Claude) -> None:
    phoenix, server = await claude(never_ends, says("Second."))
    async with hosted(phoenix, *FLAGS, "--include-partial-messages") as host:
        host.say("Go", uuid="u-1")
        await host.wait(lambda one: one["type"] == "stream_event")
        host.say("Stop, and do this", uuid="u-2")
        assert await poll(lambda: queued(phoenix) == 1)
        answer = await host.ask("interrupt")
        assert await host.close() == 0
    _, second = bodies(server)
    assert answer["response"] == {"still_queued": ["u-2"]}
    assert [(one["terminal_reason"], one["user_message_uuids"]) for one in results(host)] == [
        ("aborted_streaming", ["u-1"]),
        ("completed", ["u-2"]),
    ]
    assert "Stop, and do this" in json.dumps(second["messages"][-1])
    assert queued(phoenix) == 0


async def test_a_command_file_waits_for_its_own_turn(claude: Claude) -> None:
    phoenix, server = await claude(waits(), says("First."), says("Second."))
    (phoenix.home / "commands").mkdir()
    (phoenix.home / "commands" / "check.md").write_text("Check all of it.")
    async with hosted(phoenix, *FLAGS) as host:
        await begins(host, phoenix)
        host.say("/check", uuid="u-2")
        host.say("And the docs", uuid="u-3")
        (phoenix.cwd / "go").touch()
        assert await host.close() == 0
    _, second, third, *_ = bodies(server)
    assert "Check all of it." not in json.dumps(second)
    assert "Check all of it." in json.dumps(third)
    assert results(host)[0]["user_message_uuids"] == ["u-1"]
    assert sorted(uuid for one in results(host) for uuid in one["user_message_uuids"]) == ["u-1", "u-2", "u-3"]


async def test_messages_beyond_the_queue_of_a_run_wait_and_none_is_lost(claude: Claude) -> None:
    phoenix, _ = await claude(waits(), says("Read."))
    async with hosted(phoenix, *FLAGS) as host:
        await begins(host, phoenix)
        for number in range(102):
            host.say(f"note {number}", uuid=f"n-{number}")
        assert await poll(lambda: queued(phoenix) == 100)
        (phoenix.cwd / "go").touch()
        assert await host.close() == 0
    read = [uuid for one in results(host) for uuid in one["user_message_uuids"]]
    assert read == ["u-1", *(f"n-{number}" for number in range(102))]


IN_HOST = ("--mcp-config", json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}))
SILENT = {"UserPromptSubmit": [{"hookCallbackIds": ["never answered"]}]}


async def interrupted(host: ControlHost) -> Frame:
    """The result of an interruption of the turn that waits for the host."""
    host.say("Go", uuid="u-1")
    await host.wait(lambda one: one.get("state") == "running")
    await host.wait(lambda one: one["type"] == "control_request")
    await host.ask("interrupt")
    result = await host.wait(lambda one: one["type"] == "result")
    await host.wait(lambda one: one.get("state") == "idle")
    return result


@pytest.mark.parametrize(("flags", "hooks"), [(IN_HOST, None), ((), SILENT)], ids=["a server", "a hook"])
async def test_an_interruption_ends_a_turn_that_waits_for_something_of_the_host(
    tmp_path: Path, flags: tuple[str, ...], hooks: Any
) -> None:
    async with serve(says("never")) as server:
        async with hosted(with_claude(tmp_path, server.url), *flags) as host:
            await host.ask("initialize", hooks=hooks)
            result = await interrupted(host)
        assert bodies(server) == []
    assert (result["subtype"], result["terminal_reason"]) == ("error_during_execution", "aborted_streaming")
    assert result["user_message_uuids"] == ["u-1"]


async def test_the_turn_behind_such_an_interruption_runs(tmp_path: Path) -> None:
    def answer(request: Frame) -> Frame:
        message = request["message"]
        results = {"initialize": {"serverInfo": {"name": "calc", "version": "1"}}, "tools/list": {"tools": []}}
        return {
            "mcp_response": {"jsonrpc": "2.0", "id": message.get("id"), "result": results.get(message["method"], {})}
        }

    async with serve(says("Hello.")) as server, hosted(with_claude(tmp_path, server.url), *IN_HOST) as host:
        await host.ask("initialize")
        await interrupted(host)
        asked = await host.wait(lambda one: one["type"] == "control_request")
        response = {"subtype": "success", "request_id": asked["request_id"], "response": answer(asked["request"])}
        host.answers["mcp_message"] = answer
        host.send({"type": "control_response", "response": response})
        frames = await host.turn("And now?")
    assert frames[-1]["result"] == "Hello."


async def test_a_message_of_an_image_alone_is_sent(tmp_path: Path) -> None:
    held = io.BytesIO()
    Image.new("RGB", (8, 8)).save(held, "PNG")
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(held.getvalue()).decode()}
    async with serve(says("Seen.")) as server:
        async with hosted(with_claude(tmp_path, server.url)) as host:
            frames = await host.turn([{"type": "image", "source": source}])
        [asked] = bodies(server)
    assert asked["messages"][0]["content"][0]["type"] == "image"
    assert frames[-1]["result"] == "Seen."


@pytest.mark.parametrize("content", ["", " \n", []])
async def test_an_empty_message_is_refused_with_its_reason(tmp_path: Path, content: Any) -> None:
    async with serve(says("never")) as server, hosted(with_claude(tmp_path, server.url)) as host:
        frames = await host.turn(content)
        assert server.requests == []
    assert frames[-1]["errors"] == ["The message is empty: send a text or an image."]
