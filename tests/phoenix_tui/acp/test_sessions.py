"""Sessions of `phoenix acp`: prompts with files, turns, history, folders, owners, trust and the end of the input."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema
from acp.exceptions import RequestError
from pydantic import BaseModel

from phoenix_tui.config.rules import MOST_FOLDERS, session_rules
from tests.support.acp_client import NO_SERVERS, Editor, Opened, connected, editing, option, replies, scripted
from tests.support.cli import with_claude
from tests.support.hooked import write_hooks
from tests.support.journeys import Claude, calls, rows, says, starts_to_say
from tests.support.loading import loaded_by
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.program import alive, mark
from tests.support.waiting import PATIENCE, poll


async def test_images_and_files_of_the_editor_reach_the_model(tmp_path: Path) -> None:
    async with scripted(tmp_path, says("Seen.")) as opened:
        saved = opened.phoenix.cwd / "my notes.txt"
        saved.write_text("what is on disk")
        unsaved = opened.phoenix.cwd / "draft.txt"
        await opened.says(
            "Look at ",
            acp.image_block(base64.b64encode(TINY_PNG).decode(), "image/png"),
            acp.resource_link_block("notes", saved.as_uri()),
            acp.resource_block(acp.embedded_text_resource(unsaved.as_uri(), "only in the editor")),
        )
        content = json.loads(opened.requests[-1].body)["messages"][-1]["content"]
    words = json.dumps(content)
    assert "image/png" in words
    assert "what is on disk" in words
    assert "only in the editor" in words


async def test_a_session_is_listed_loaded_with_its_history_and_deleted(claude: Claude) -> None:
    phoenix, _ = await claude(replies(calls("bash", command="echo out"), says("Done."), says("Again.")))
    async with editing(phoenix, "--permission-mode", "auto") as first:
        await first.says("Run it")
    async with connected(phoenix) as later:
        listed = await later.agent.list_sessions(cwd=str(phoenix.cwd))
        [one] = listed.sessions
        assert (one.session_id, one.title) == (first.session_id, "Run it")
        await later.agent.load_session(cwd=str(phoenix.cwd), session_id=one.session_id, mcp_servers=NO_SERVERS)
        kinds = [update.session_update for update in later.editor.updates]
        assert kinds == ["user_message_chunk", "tool_call", "agent_message_chunk"]
        call = later.editor.call("toolu_1")
        assert (call["title"], call["status"]) == ("echo out", "completed")
        assert "out" in call["content"][0]["content"]["text"]
        await later.agent.prompt(session_id=one.session_id, prompt=[acp.text_block("More")])
        assert "Again." in later.editor.text
        await later.agent._conn.send_request("session/delete", {"sessionId": one.session_id})
        assert (await later.agent.list_sessions()).sessions == []
        with pytest.raises(RequestError, match="no session"):
            await later.agent.resume_session(cwd=str(phoenix.cwd), session_id=one.session_id)


async def test_a_conversation_of_another_process_is_refused_with_its_pid(tmp_path: Path) -> None:
    async with scripted(tmp_path, says("Hi.")) as first:
        await first.says("Hi")
        async with connected(first.phoenix) as second:
            with pytest.raises(RequestError, match=str(first.process.pid)):
                await second.agent.resume_session(cwd=str(first.phoenix.cwd), session_id=first.session_id)
            await first.agent.close_session(session_id=first.session_id)
            await second.agent.resume_session(cwd=str(first.phoenix.cwd), session_id=first.session_id)


async def test_wrong_requests_are_answered_with_sentences(tmp_path: Path) -> None:
    async with scripted(tmp_path, says("Hi.")) as opened:
        agent = opened.agent
        with pytest.raises(RequestError, match="absolute path"):
            await agent.new_session(cwd="work", mcp_servers=NO_SERVERS)
        with pytest.raises(RequestError, match="does not exist"):
            await agent.new_session(cwd=str(tmp_path / "none"), mcp_servers=NO_SERVERS)
        with pytest.raises(RequestError, match="no open session"):
            await agent.prompt(session_id="nowhere", prompt=[acp.text_block("Hi")])
        with pytest.raises(RequestError, match="that folder"):
            await agent.close_session(session_id=opened.session_id)
            await agent.resume_session(cwd=str(tmp_path), session_id=opened.session_id)
        with pytest.raises(RequestError, match="no permission mode"):
            begun = await agent.new_session(cwd=str(opened.phoenix.cwd), mcp_servers=NO_SERVERS)
            await agent.set_session_mode(session_id=begun.session_id, mode_id="yolo")
        with pytest.raises(RequestError, match="prompt is empty"):
            await agent.prompt(session_id=begun.session_id, prompt=[acp.text_block(" ")])
        with pytest.raises(RequestError, match="base64"):
            await agent.prompt(session_id=begun.session_id, prompt=[acp.image_block("?", "image/png")])
        with pytest.raises(RequestError, match="no method"):
            await agent._conn.send_request("session/dance", {})


async def test_a_second_prompt_is_refused_or_steers(tmp_path: Path) -> None:
    seconds = mark()
    script = (calls("bash", command=f"sleep {seconds}"), says("Both."))
    async with scripted(tmp_path, *script, flags=("--permission-mode", "auto")) as opened:
        turn = asyncio.create_task(opened.says("First"))
        assert await poll(lambda: alive(f"sleep\0{seconds}"))
        with pytest.raises(RequestError, match="works on a prompt"):
            await opened.says("Second")
        block: list[Any] = [acp.text_block("Second")]
        steered = asyncio.create_task(
            opened.agent.prompt(session_id=opened.session_id, prompt=block, phoenix={"steer": True})
        )
        await opened.agent.set_session_mode(session_id=opened.session_id, mode_id="auto")
        for pid in alive(f"sleep\0{seconds}"):
            os.kill(pid, signal.SIGTERM)
        assert {(await turn).stop_reason, (await steered).stop_reason} == {"end_turn"}
        assert "Second" in opened.requests[-1].body.decode()


async def test_a_client_that_is_gone_interrupts_its_turn_and_stops_it_not(claude: Claude) -> None:
    seconds = mark()
    phoenix, _ = await claude(replies(calls("bash", command=f"sleep {seconds}")))
    async with editing(phoenix, "--permission-mode", "auto") as opened:
        turn = asyncio.create_task(opened.says("Go"))
        assert await poll(lambda: alive(f"sleep\0{seconds}"))
    turn.cancel()
    await asyncio.wait((turn,))
    assert alive(seconds) == []
    assert rows(phoenix, "select status from runs") == [("interrupted",)]


async def test_files_of_a_folder_count_only_once_it_is_trusted(claude: Claude) -> None:
    phoenix, server = await claude(replies(says("Hi.")))
    (phoenix.cwd / "AGENTS.md").write_text("Speak like a heron.")
    async with editing(phoenix) as opened:
        await opened.says("Hi")
        await opened.says("Hi again")
        assert opened.editor.text.count("is not trusted") == 1
    assert "heron" not in server.requests[-1].body.decode()
    async with editing(phoenix, "--trust") as opened:
        await opened.says("Hi")
        assert "not trusted" not in opened.editor.text
    assert "heron" in server.requests[-1].body.decode()


@pytest.mark.parametrize("ends", ["input", "signal"])
async def test_the_end_of_the_client_ends_everything(tmp_path: Path, ends: str) -> None:
    seconds = mark()
    script = (calls("bash", command=f"setsid sleep {seconds} & sleep {seconds}"),)
    async with scripted(tmp_path, *script, flags=("--permission-mode", "auto")) as opened:
        turn = asyncio.create_task(opened.says("Wait"))
        assert await poll(lambda: len(alive(f"sleep\0{seconds}")) == 2)
        if ends == "input":
            assert opened.process.stdin is not None
            opened.process.stdin.close()
        else:
            opened.process.terminate()
        async with asyncio.timeout(PATIENCE):
            assert await opened.process.wait() == (0 if ends == "input" else 143)
        assert alive(f"sleep\0{seconds}") == []
        turn.cancel()


async def test_questions_of_the_agent_are_a_form(tmp_path: Path) -> None:
    asked = [
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
        },
        {
            "question": "Which sizes?",
            "header": "Sizes",
            "multiSelect": True,
            "options": [{"label": "S", "description": ""}, {"label": "L", "description": ""}],
        },
    ]
    editor = Editor(fill={"q1": "Blue", "q2": ["S", "L"], "q2_other": "and XXL"})
    form = acp.schema.ElicitationCapabilities(form=acp.schema.ElicitationFormCapabilities())
    script = (calls("ask_user", questions=asked), says("Thanks."))
    async with scripted(tmp_path, *script, editor=editor, elicitation=form) as opened:
        await opened.says("Ask")
        told = opened.requests[-1].body.decode()
    assert 'Which colour?\\"=\\"Blue' in told.replace("\\\\", "\\")
    assert "S, L, and XXL" in told


async def test_questions_are_choices_where_the_editor_has_no_forms(tmp_path: Path) -> None:
    asked = [
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
        }
    ]
    editor = Editor(choose=lambda options: options[1].option_id)
    script = (calls("ask_user", questions=asked), says("Thanks."))
    async with scripted(tmp_path, *script, editor=editor) as opened:
        await opened.says("Ask")
        assert "Blue" in opened.requests[-1].body.decode().split("tool_result")[-1]
    [(_, options)] = editor.asked
    assert [one.name for one in options] == ["Red", "Blue", "Decline to answer"]


async def test_commands_are_listed_and_run_without_the_model(tmp_path: Path) -> None:
    async with scripted(tmp_path, says("Hi.")) as opened:
        await opened.says("Hi")
        sent = len(opened.requests)
        for command, words in (
            ("/cost", "tokens in"),
            ("/context", "tokens are in the context"),
            ("/model", "model is"),
        ):
            before = len(opened.editor.text)
            assert (await opened.says(command)).stop_reason == "end_turn"
            assert words in opened.editor.text[before:]
        assert len(opened.requests) == sent
        [listed] = opened.editor.of("available_commands_update")
        assert [one.name for one in listed.available_commands] == ["compact", "context", "init", "model", "cost"]


async def test_init_reads_no_file_that_a_rule_closes(tmp_path: Path) -> None:
    async with scripted(tmp_path, says("Written.")) as opened:
        (opened.phoenix.cwd / "README.md").write_text("# Closed\n\nA secret plan.\n")
        (opened.phoenix.cwd / "Makefile").write_text("check:\n\ttrue\n")
        (opened.phoenix.home / "rules.toml").write_text('deny = ["read_file(README.md)"]\n')
        assert (await opened.says("/init")).stop_reason == "end_turn"
        sent = opened.requests[-1].body.decode()
    assert "make check" in sent
    assert "secret plan" not in sent


async def test_one_process_serves_several_sessions(tmp_path: Path) -> None:
    async with scripted(tmp_path, starts_to_say("Long"), says("Short.")) as opened:
        turn = asyncio.create_task(opened.says("First"))
        await opened.editor.sees(lambda: "Long" in opened.editor.text)
        other = await opened.agent.new_session(cwd=str(opened.phoenix.cwd), mcp_servers=NO_SERVERS)
        answer = await opened.agent.prompt(session_id=other.session_id, prompt=[acp.text_block("Second")])
        assert answer.stop_reason == "end_turn"
        await opened.agent.cancel(session_id=opened.session_id)
        assert (await turn).stop_reason == "cancelled"


async def test_a_permission_stays_open_until_the_run_is_cancelled(tmp_path: Path) -> None:
    editor = Editor(holds=True, choose=option("allow_once"))
    async with scripted(tmp_path, calls("bash", command="touch made"), editor=editor) as opened:
        turn = asyncio.create_task(opened.says("Go"))
        await editor.sees(lambda: editor.asked)
        await opened.agent.cancel(session_id=opened.session_id)
        assert (await turn).stop_reason == "cancelled"
        assert not (opened.phoenix.cwd / "made").exists()


async def test_a_cancel_right_behind_a_prompt_is_about_it(tmp_path: Path) -> None:
    async with scripted(tmp_path, starts_to_say("Once")) as opened:
        for _ in range(3):
            draft = acp.resource_block(acp.embedded_text_resource("file:///none", "text"))
            turn, _done = await asyncio.gather(
                opened.says("Tell", draft), opened.agent.cancel(session_id=opened.session_id)
            )
            assert turn.stop_reason == "cancelled"


async def test_a_cancel_while_hooks_look_at_a_prompt_is_no_error(tmp_path: Path) -> None:
    marked = mark()
    phoenix = with_claude(tmp_path, "http://127.0.0.1:9")
    write_hooks(phoenix.home / "hooks.json", UserPromptSubmit=f"sleep {marked}")
    async with editing(phoenix) as opened:
        prompt = asyncio.ensure_future(opened.says("Tell"))
        assert await poll(lambda: bool(alive(marked)))
        await opened.agent.cancel(session_id=opened.session_id)
        assert (await prompt).stop_reason == "cancelled"
    assert alive(marked) == []


async def test_a_refused_session_is_left_to_others(tmp_path: Path) -> None:
    async with scripted(tmp_path, says("Hi.")) as first:
        await first.agent.close_session(session_id=first.session_id)
        for wrong in (str(tmp_path), "/"):
            with pytest.raises(RequestError, match="that folder"):
                await first.agent.resume_session(cwd=wrong, session_id=first.session_id)
        copy = await first.agent.fork_session(cwd=str(first.phoenix.cwd), session_id=first.session_id)
        assert copy.session_id != first.session_id
        async with connected(first.phoenix) as second:
            await second.agent.resume_session(cwd=str(first.phoenix.cwd), session_id=first.session_id)
            with pytest.raises(RequestError, match="no session"):
                await second.agent.fork_session(cwd=str(first.phoenix.cwd), session_id="nowhere")


async def test_without_the_sdk_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['acp'] = None; from phoenix_tui.__main__ import main; sys.exit(main(['acp']))"
    phoenix = with_claude(tmp_path, "http://127.0.0.1:9")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        env=phoenix.environment,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert said.decode() == (
        "phoenix: `phoenix acp` needs agent-client-protocol; install it with `pip install 'phoenix-tui[acp]'`.\n"
    )


async def test_command_files_are_listed_and_ask_before_their_lines_run(claude: Claude) -> None:
    editor = Editor(choose=option("allow_once"))
    phoenix, server = await claude(replies(says("Hi.")))
    commands = phoenix.cwd / ".claude" / "commands"
    commands.mkdir(parents=True)
    (commands / "fix.md").write_text(
        "---\ndescription: Fix it\nargument-hint: ISSUE\n---\nFix $ARGUMENTS now: !`echo from-$((40+2))`\n"
    )
    async with editing(phoenix, "--trust", editor=editor) as opened:
        await editor.sees(lambda: editor.of("available_commands_update"))
        listed = editor.of("available_commands_update")[-1].available_commands
        assert [one.name for one in listed][-1] == "fix"
        assert (await opened.says("/fix 7")).stop_reason == "end_turn"
    sent = [one for one in server.requests if one.method == "POST"][-1].body.decode()
    assert "Fix 7 now: from-42" in sent
    [(asked, _)] = editor.asked
    assert "echo from-$((40+2))" in asked.content[0].content.text


async def begun(opened: Opened, *folders: Path) -> Opened:
    """The same with a new session of these folders."""
    session = await opened.agent.new_session(
        cwd=str(opened.phoenix.cwd), mcp_servers=NO_SERVERS, additional_directories=[str(one) for one in folders]
    )
    return replace(opened, session_id=session.session_id)


async def test_files_of_a_further_folder_are_read_without_a_question_and_written_with_one(
    claude: Claude, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("from outside")
    reads, writes = calls("read_file", path=str(docs / "a.txt")), calls("write_file", path=str(docs / "b"), content="x")
    phoenix, _ = await claude(replies(reads, writes, says("Done.")))
    async with connected(phoenix) as opened:
        opened.editor.choose = option("reject_once")
        session = await begun(opened, docs, tmp_path / "none")
        await session.says("Go")
        asked = [call.raw_input for call, _ in opened.editor.asked]
        assert f"The folder {tmp_path / 'none'} cannot be added: there is none." in opened.editor.text
    assert [one.get("content") for one in asked] == ["x"]
    assert not (docs / "b").exists()


async def test_a_session_that_closes_takes_its_folders_with_it(claude: Claude, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("from outside")
    reads = calls("read_file", path=str(docs / "a.txt"))
    phoenix, _ = await claude(replies(reads, says("Read."), reads, says("Asked.")))
    async with connected(phoenix) as opened:
        opened.editor.choose = option("reject_once")
        first = await begun(opened, docs)
        await first.says("Go")
        assert opened.editor.asked == []
        await opened.agent.close_session(session_id=first.session_id)
        await (await begun(opened)).says("Go")
        assert len(opened.editor.asked) == 1


def test_what_is_no_folder_is_named_and_many_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "a*b").mkdir()
    rules, troubles = session_rules(tmp_path, ["file", "a*b", "nul\0"])
    assert rules == []
    assert [one.rpartition(": ")[2] for one in troubles] == [
        "it is no folder.",
        "its name has signs of a pattern.",
        "there is none.",
    ]
    rules, troubles = session_rules(tmp_path, [str(tmp_path)] * (MOST_FOLDERS + 5))
    assert {one.project for one in rules} == {str(tmp_path)}
    assert troubles == [f"5 further folders are left out: {MOST_FOLDERS} are used."]


FRONT_ENDS = "phoenix_tui.app phoenix_tui.wiring.screen phoenix_tui.wiring.linear phoenix_tui.wiring.headless"
STARTS = f"{FRONT_ENDS} phoenix_tui.wiring.acp"
OTHERS = """
import importlib, pkgutil
for package in ("phoenix_tui", "engine", "tools"):
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not found.name.startswith(("phoenix_tui.acp.", "tools.mcp_host.")) and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
"""


def test_no_front_end_loads_the_sdk_or_pydantic_at_its_start() -> None:
    loaded = loaded_by("\n".join(f"import {name}" for name in STARTS.split()))
    assert not loaded & {"acp", "pydantic"}


def test_no_module_outside_of_the_agent_loads_the_sdk() -> None:
    assert "acp" not in loaded_by(OTHERS)


async def test_a_prompt_is_answered_in_chunks_and_ends_its_turn(tmp_path: Path) -> None:
    async with scripted(tmp_path, says("Hel", "lo ", "there.")) as opened:
        response = await opened.says("Hi")
        assert response.stop_reason == "end_turn"
        assert opened.editor.text.strip() == "Hello there."
        assert all(one.content.text for one in opened.editor.of("agent_message_chunk"))


async def test_many_pieces_come_as_few_updates(tmp_path: Path) -> None:
    pieces = [f"{number} " for number in range(2_000)]
    async with scripted(tmp_path, says(*pieces)) as opened:
        await opened.says("Count")
        assert opened.editor.text.strip() == "".join(pieces).strip()
        assert len(opened.editor.of("agent_message_chunk")) < 200


async def test_cancel_answers_the_prompt_with_cancelled(tmp_path: Path) -> None:
    async with scripted(tmp_path, starts_to_say("Once upon")) as opened:
        turn = asyncio.create_task(opened.says("Tell"))
        await opened.editor.sees(lambda: "Once upon" in opened.editor.text)
        await opened.agent.cancel(session_id=opened.session_id)
        assert (await turn).stop_reason == "cancelled"


async def test_cancel_in_a_tool_leaves_no_process(tmp_path: Path) -> None:
    seconds = mark()
    command = f"sleep {seconds} & setsid sleep {seconds} & sleep {seconds}"
    async with scripted(tmp_path, calls("bash", command=command), flags=("--permission-mode", "auto")) as opened:
        turn = asyncio.create_task(opened.says("Wait"))
        assert await poll(lambda: len(alive(f"sleep\0{seconds}")) == 3)
        await opened.agent.cancel(session_id=opened.session_id)
        assert (await turn).stop_reason == "cancelled"
        assert alive(f"sleep\0{seconds}") == []
        assert opened.editor.call("toolu_1")["status"] == "failed"


async def test_a_failed_run_is_an_error_with_its_sentence(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:9", PHOENIX_MODEL="nowhere/model")
    with pytest.raises(RequestError, match="nowhere"):
        async with editing(phoenix) as opened:
            await opened.says("Hi")


ASKED = [
    {
        "question": "Which?",
        "header": "One",
        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
    }
]
TODOS = [{"content": "Read", "status": "in_progress"}]
ANSWERS: dict[str, type[BaseModel]] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
    "session/close": schema.CloseSessionResponse,
}
REQUESTS: dict[str, type[BaseModel]] = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
    "elicitation/create": schema.CreateFormSessionElicitationRequest,
}


def as_the_schema_has_it(kind: type[BaseModel], sent: Any) -> Any:
    """The value after its way through the schema, which drops what it does not know."""
    return kind.model_validate(sent).model_dump(mode="json", by_alias=True, exclude_unset=True)


async def test_every_message_is_one_of_the_schema(tmp_path: Path) -> None:
    editor = Editor(choose=option("allow_once"), fill={"q1": "A"})
    form = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
    script = (
        calls("todo_write", "toolu_1", todos=TODOS),
        calls("bash", "toolu_2", command="echo one"),
        calls("write_file", "toolu_3", path="a.txt", content="text"),
        calls("ask_user", "toolu_4", questions=ASKED),
        says("Done."),
    )
    async with scripted(tmp_path, *script, editor=editor, elicitation=form) as opened:
        agent, cwd, session = opened.agent, str(opened.phoenix.cwd), opened.session_id
        await opened.says("Go")
        await agent.set_session_mode(session_id=session, mode_id="plan")
        await agent.set_config_option(config_id="effort", session_id=session, value="low")
        await agent.list_sessions()
        copy = await agent.fork_session(cwd=cwd, session_id=session)
        await agent.close_session(session_id=copy.session_id)
        await agent.close_session(session_id=session)
        await agent.load_session(cwd=cwd, session_id=session, mcp_servers=NO_SERVERS)
        await agent.prompt(session_id=session, prompt=[acp.text_block("Again")])
    asked = {one["id"]: one["method"] for one in editor.frames if one["direction"] == "outgoing" and "method" in one}
    seen: set[str] = set()
    for frame in editor.frames:
        if frame["direction"] == "outgoing":
            continue
        assert frame["jsonrpc"] == "2.0"
        method = frame.get("method") or asked[frame["id"]]
        kind = (REQUESTS if "method" in frame else ANSWERS)[method]
        sent = frame["params"] if "method" in frame else frame["result"]
        assert as_the_schema_has_it(kind, sent) == sent, method
        seen.add(method)
    assert seen == set(ANSWERS) | set(REQUESTS)
