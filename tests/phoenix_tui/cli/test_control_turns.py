"""Hosts on stdin: the handshake, messages and their results, interruptions, modes and models."""

from __future__ import annotations

import base64
import json
import signal
from pathlib import Path
from uuid import UUID

from tests.support.cli import with_claude
from tests.support.control_host import hosted
from tests.support.journeys import rows
from tests.support.loopback import serve
from tests.support.loopback_agents import calls, never_ends, says
from tests.support.loopback_anthropic import TINY_PNG, refuses

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


async def test_an_interruption_ends_the_turn_and_the_next_one_works(tmp_path: Path) -> None:
    async with (
        serve(never_ends, says("Back.")) as server,
        hosted(with_claude(tmp_path, server.url), "--include-partial-messages") as host,
    ):
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


async def test_pieces_of_a_reply_name_tools_as_the_host_knows_them(tmp_path: Path) -> None:
    reads = calls("read_file", {"path": "a.txt"})
    async with serve(reads, says("Read.")) as server:
        phoenix = with_claude(tmp_path, server.url)
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
    loops = [calls("list_files", {"path": "."}, f"toolu_{number}") for number in range(4)]
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


async def test_a_conversation_is_resumed_and_forked(tmp_path: Path) -> None:
    async with serve(says("One."), says("Two."), says("Three.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix) as host:
            first = await host.turn("Hi")
        name = first[0]["session_id"]
        async with hosted(phoenix, f"--resume={name}") as host:
            second = await host.turn("Hi")
        async with hosted(phoenix, f"--resume={name}", "--fork-session") as host:
            third = await host.turn("Hi")
    assert second[0]["session_id"] == name != third[0]["session_id"]
    assert [one[-1]["result"] for one in (first, second, third)] == ["One.", "Two.", "Three."]


async def test_sigterm_ends_the_run_and_the_program(tmp_path: Path) -> None:
    async with serve(never_ends) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix) as host:
            host.say("Go")
            await server.wait_asked()
            host.process.send_signal(signal.SIGTERM)
            code = await host.end()
    assert code == 143
    assert host.messages()[-1]["type"] == "result"
    assert rows(phoenix, "select status from runs") == [("interrupted",)], "the host did not stop it"
