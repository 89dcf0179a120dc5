"""Tool calls, questions, plans and settings of `phoenix acp`."""

from __future__ import annotations

from pathlib import Path

from acp import schema

from tests.support.acp_client import Editor, option, scripted
from tests.support.journeys import calls, says
from tests.support.loopback_agents import by_last_message

WHOLE = "".join(f"line {number}\n" for number in range(40))


async def test_a_command_is_asked_about_and_shows_its_output(tmp_path: Path) -> None:
    editor = Editor(choose=option("allow_once"))
    async with scripted(
        tmp_path, calls("bash", command="echo one; echo two >&2; exit 3"), says("Done."), editor=editor
    ) as opened:
        assert (await opened.says("Go")).stop_reason == "end_turn"
    [(asked, options)] = editor.asked
    assert [one.kind for one in options] == ["allow_once", "allow_always", "reject_once"]
    assert "echo one; echo two >&2; exit 3" in asked.content[0].content.text
    call = editor.call("toolu_1")
    assert (call["kind"], call["status"]) == ("execute", "failed")
    assert call["raw_input"] == {"command": "echo one; echo two >&2; exit 3"}
    assert "one\ntwo\n[exit code 3]" in call["content"][0]["content"]["text"]


async def test_a_rejected_command_does_not_run(tmp_path: Path) -> None:
    editor = Editor(choose=option("reject_once"))
    async with scripted(tmp_path, calls("bash", command="touch made"), says("I see."), editor=editor) as opened:
        assert (await opened.says("Go")).stop_reason == "end_turn"
    assert not (opened.phoenix.cwd / "made").exists()
    assert editor.call("toolu_1")["status"] == "failed"


async def test_a_cancelled_question_cancels_the_run(tmp_path: Path) -> None:
    async with scripted(tmp_path, calls("bash", command="touch made")) as opened:
        assert (await opened.says("Go")).stop_reason == "cancelled"
        assert not (opened.phoenix.cwd / "made").exists()


async def test_allowed_for_the_conversation_it_is_not_asked_again(tmp_path: Path) -> None:
    editor = Editor(choose=option("allow_always"))
    script = (calls("bash", "toolu_1", command="touch a"), calls("bash", "toolu_2", command="touch a"), says("Done."))
    async with scripted(tmp_path, *script, editor=editor) as opened:
        await opened.says("Go")
    assert len(editor.asked) == 1
    assert (opened.phoenix.cwd / "a").exists()


async def test_an_edit_shows_the_whole_file_before_and_after(tmp_path: Path) -> None:
    editor = Editor(choose=option("allow_once"))
    script = (
        calls("read_file", "toolu_1", path="a.txt", offset=3),
        calls("patch", "toolu_2", path="a.txt", edits=[{"op": "replace", "old": "line 30\n", "new": "changed\n"}]),
        says("Done."),
    )
    async with scripted(tmp_path, *script, editor=editor) as opened:
        file = opened.phoenix.cwd / "a.txt"
        file.write_text(WHOLE)
        await opened.says("Go")
    [(asked, _)] = editor.asked
    after = WHOLE.replace("line 30\n", "changed\n")
    for shown in (asked.content[0].model_dump(), editor.call("toolu_2")["content"][0]):
        assert (shown["old_text"], shown["new_text"]) == (WHOLE, after)
        assert shown["path"] == str(file)
    assert file.read_text() == after
    assert editor.call("toolu_1")["locations"] == [{"path": str(file), "line": 3}]


async def test_a_new_file_has_no_text_before(tmp_path: Path) -> None:
    async with scripted(
        tmp_path,
        calls("write_file", path="new.txt", content="hello\nworld"),
        says("Done."),
        flags=("--permission-mode", "accept-edits"),
    ) as opened:
        await opened.says("Go")
        [diff] = opened.editor.call("toolu_1")["content"]
    assert (diff.get("old_text"), diff["new_text"]) == (None, "hello\nworld")


async def test_a_todo_list_is_a_plan(tmp_path: Path) -> None:
    todos = [
        {"content": "Read", "status": "completed"},
        {"content": "Write", "status": "in_progress", "activeForm": "Writing"},
        {"content": "Sing", "status": "cancelled"},
    ]
    async with scripted(tmp_path, calls("todo_write", todos=todos), says("Done.")) as opened:
        await opened.says("Go")
        plan = opened.editor.of("plan")[0]
    assert [(one.content, one.status) for one in plan.entries] == [("Read", "completed"), ("Writing", "in_progress")]
    assert opened.editor.of("tool_call") == []


async def test_modes_models_and_effort_are_changed_from_both_sides(tmp_path: Path) -> None:
    async with scripted(tmp_path, says("Hi.")) as opened:
        agent, session = opened.agent, opened.session_id
        await agent.set_session_mode(session_id=session, mode_id="plan")
        answer = await agent.set_config_option(config_id="effort", session_id=session, value="high")
        now = {one.id: one.current_value for one in answer.config_options}
        assert (now["mode"], now["effort"]) == ("plan", "high")
        await agent._conn.send_request(
            "session/set_model", {"sessionId": session, "modelId": "anthropic/claude-opus-5"}
        )
        await opened.editor.sees(lambda: len(opened.editor.of("config_option_update")) == 3)
        await opened.says("Hi")
    assert [one.current_mode_id for one in opened.editor.of("current_mode_update")] == ["plan"]
    assert '"model":"claude-opus-5"' in opened.requests[-1].body.decode().replace(" ", "")
    used = opened.editor.of("usage_update")[-1]
    assert 0 < used.used < used.size


async def test_a_plan_is_answered_in_the_editor(tmp_path: Path) -> None:
    editor = Editor(choose=option("allow_always"))
    async with scripted(
        tmp_path,
        calls("exit_plan", plan="# Do it\n\n1. Now"),
        says("Doing."),
        flags=("--permission-mode", "plan"),
        editor=editor,
    ) as opened:
        assert (await opened.says("Plan")).stop_reason == "end_turn"
    [(asked, _)] = editor.asked
    assert asked.kind == "switch_mode"
    assert asked.content[0].content.text == "# Do it\n\n1. Now"
    assert editor.of("current_mode_update")[-1].current_mode_id == "accept-edits"


async def test_an_answer_without_sense_is_a_no(tmp_path: Path) -> None:
    editor = Editor(choose=lambda _: "whatever", fill={"q1": 5, "q1_other": ""})
    asked = [
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [{"label": "Red", "description": ""}, {"label": "Blue", "description": ""}],
        }
    ]
    script = (calls("bash", "toolu_1", command="touch made"), calls("ask_user", "toolu_2", questions=asked), says("."))
    form = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
    async with scripted(tmp_path, *script, editor=editor, elicitation=form) as opened:
        assert (await opened.says("Go")).stop_reason == "end_turn"
        assert not (opened.phoenix.cwd / "made").exists()
    assert len(editor.forms) == 1
    assert [editor.call(one)["status"] for one in ("toolu_1", "toolu_2")] == ["failed", "failed"]


async def test_a_cancelled_question_of_a_sub_agent_cancels_the_run_that_waits_for_it(tmp_path: Path) -> None:
    editor = Editor(choose=lambda options: "allow_once" if len(editor.asked) == 1 else None)
    model = by_last_message({
        "Look around": calls("bash", "toolu_bash", command="touch made"),
        "Delegate": calls("spawn_agents", "toolu_spawn", tasks=[{"task": "Look around"}]),
    })
    async with scripted(tmp_path, model, editor=editor) as opened:
        assert (await opened.says("Delegate")).stop_reason == "cancelled"
        assert len(opened.requests) == 2
    assert [asked.kind for asked, _ in editor.asked] == ["other", "execute"]
    assert not (opened.phoenix.cwd / "made").exists()


async def test_sub_agents_show_their_words_and_ask_through_the_session(tmp_path: Path) -> None:
    editor = Editor(choose=option("allow_once"))
    model = by_last_message({
        "It was seen.": says("All done."),
        "Delegate": calls("spawn_agents", "toolu_spawn", tasks=[{"task": "Look around"}]),
        "Look around": calls("bash", "toolu_bash", command="echo seen"),
        "seen": calls("submit_result", "toolu_submit", result="It was seen."),
    })
    async with scripted(tmp_path, model, editor=editor) as opened:
        assert (await opened.says("Delegate")).stop_reason == "end_turn"
    titles = [asked.title for asked, _ in editor.asked]
    assert "Sub-agent: echo seen" in titles
    nested = [one for one in editor.of("tool_call_update") if one.tool_call_id == "toolu_spawn" and one.content]
    assert any("**Look around**: echo seen" in one.content[0].content.text for one in nested)
    assert "It was seen." in nested[-1].content[0].content.text
    assert editor.call("toolu_spawn")["status"] == "completed"
    assert "All done." in editor.text
