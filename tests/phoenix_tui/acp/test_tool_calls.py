"""Tool calls, questions, plans, diffs and unsaved texts of `phoenix acp`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from acp import schema
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.acp.services import LARGEST, MOST_SHOWN
from phoenix_tui.acp.tool_calls import build_content, make_edit, make_parts
from tests.support.acp_client import Editor, Opened, option, scripted
from tests.support.journeys import calls, says
from tests.support.loopback_agents import by_last_message
from tools.contract import DiffDisplay
from tools.displays import CodeProblem, EditCheck
from tools.files.content import diff_display

WHOLE = "".join(f"line {number}\n" for number in range(40))


async def test_a_command_is_asked_about_and_shows_its_output(tmp_path: Path) -> None:
    editor = Editor(choose=option("allow_once"))
    async with scripted(
        tmp_path, calls("bash", command="echo one; echo two >&2; exit 3"), says("Done."), editor=editor
    ) as opened:
        assert (await opened.says("Go")).stop_reason == "end_turn"
    [(asked, options)] = editor.asked
    assert [one.kind for one in options] == ["allow_once", "allow_always", "allow_always", "reject_once"]
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


def test_new_errors_are_text_beside_the_diff() -> None:
    check = EditCheck("ruff", "a.py", (CodeProblem(2, 5, "x is not defined", code="F821"),), 1)
    (part,) = build_content(DiffDisplay("a.py", "@@ -1 +1 @@\n-a\n+x", 1, 1, checks=(check,)), "")
    assert "ruff: 1 new error\n  2:5 x is not defined [F821]" in str(part.model_dump()["content"]["text"])
    assert build_content(DiffDisplay("a.py", "", 1, 1), "") == []


READS = calls("read_file", path="a.txt")
FILES: dict[str, Any] = {"fs": schema.FileSystemCapabilities(read_text_file=True)}
AUTO = {"PHOENIX_PERMISSION_MODE": "auto"}


def open_editor(folder: Path, disk: str, held: str | None, **more: Any) -> Editor:
    """An editor that has a file open."""
    path = folder / "work" / "a.txt"
    path.parent.mkdir()
    path.write_text(disk)
    return Editor(texts={} if held is None else {str(path): held}, **more)


def told(opened: Opened) -> str:
    return json.dumps(json.loads(opened.requests[-1].body)["messages"][-1], ensure_ascii=False)


async def test_a_read_tells_of_changes_that_are_not_saved(tmp_path: Path) -> None:
    one = open_editor(tmp_path, "one\ntwo\nthree\n", "one\n2 unsaved\nthree\n")
    async with scripted(tmp_path, READS, says("Read."), editor=one, **FILES) as opened:
        assert (await opened.says("Read")).stop_reason == "end_turn"
        words = told(opened)
    assert one.read == [str(tmp_path / "work" / "a.txt")]
    assert ["two" in words, "-two" in words, "+2 unsaved" in words, "not saved" in words] == [True] * 4
    assert one.asked == []


@pytest.mark.parametrize("held", ["one\r\ntwo\r\n", "one\ntwo", None, "x" * (LARGEST + 1)])
async def test_a_saved_text_and_one_that_is_unknown_change_nothing(tmp_path: Path, held: str | None) -> None:
    one = open_editor(tmp_path, "one\ntwo\n", held)
    async with scripted(tmp_path, READS, says("Read."), editor=one, **FILES) as opened:
        assert (await opened.says("Read")).stop_reason == "end_turn"
        words = told(opened)
    assert ("two" in words, "not saved" in words) == (True, False)


async def test_an_editor_without_the_capability_is_not_asked(tmp_path: Path) -> None:
    one = open_editor(tmp_path, "one\n", "two\n")
    async with scripted(tmp_path, READS, says("Read."), editor=one) as opened:
        await opened.says("Read")
        words = told(opened)
    assert (one.read, "not saved" in words) == ([], False)


@pytest.mark.parametrize(("kind", "after"), [("allow_once", "new\n"), ("reject_once", "one\n")])
async def test_a_change_of_such_a_file_asks_in_every_mode(tmp_path: Path, kind: str, after: str) -> None:
    one = open_editor(tmp_path, "one\n", "one, unsaved\n", choose=option(kind))
    writes = calls("write_file", path="a.txt", content="new\n")
    async with scripted(tmp_path, READS, writes, says("Done."), editor=one, extra=AUTO, **FILES) as opened:
        assert (await opened.says("Write")).stop_reason == "end_turn"
    [(call, _)] = one.asked
    assert "a.txt has unsaved changes in the editor" in call.model_dump_json()
    assert (tmp_path / "work" / "a.txt").read_text() == after


async def test_a_saved_file_is_changed_without_a_question_in_auto(tmp_path: Path) -> None:
    one = open_editor(tmp_path, "one\n", "one\n")
    writes = calls("write_file", path="a.txt", content="new\n")
    async with scripted(tmp_path, READS, writes, says("Done."), editor=one, extra=AUTO, **FILES) as opened:
        await opened.says("Write")
    assert (one.asked, (tmp_path / "work" / "a.txt").read_text()) == ([], "new\n")


async def test_a_long_and_hostile_text_is_cut_and_cleaned(tmp_path: Path) -> None:
    one = open_editor(tmp_path, "one\n", "\x1b]0;title\x07" + "word\n" * 20_000)
    async with scripted(tmp_path, READS, says("Read."), editor=one, **FILES) as opened:
        await opened.says("Read")
        words = told(opened)
    assert "the rest is left out" in words
    assert len(words) < 2 * MOST_SHOWN + 4_000
    assert "\\u001b" not in words


async def test_an_editor_that_never_answers_holds_nothing_up(tmp_path: Path) -> None:
    one = open_editor(tmp_path, "one\n", None)
    one.texts = None
    async with scripted(tmp_path, READS, says("Read."), editor=one, **FILES) as opened:
        assert (await opened.says("Read")).stop_reason == "end_turn"
        assert "one" in told(opened)


TEXTS = st.lists(st.sampled_from(["a", "b", "same", "", "@@ -1 +1 @@", "-x", "\\ No newline", "ü\r"]), max_size=30).map(
    "\n".join
)


@given(TEXTS, TEXTS, st.booleans())
async def test_both_texts_are_whole(old: str, new: str, is_done: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.txt"
        file.write_bytes((new if is_done else old).encode())
        shown = await make_edit(file, diff_display("a.txt", old, new), is_done=is_done)
    assert (shown.old_text, shown.new_text) == (old, new)


async def test_of_another_text_the_changed_parts_are_shown(tmp_path: Path) -> None:
    old = "".join(f"{number}\n" for number in range(50))
    display = diff_display("a.txt", old, old.replace("25\n", "changed\n"))
    file = tmp_path / "a.txt"
    file.write_text("something else\n")
    for found in (await make_edit(file, display, is_done=True), make_parts(file, display)):
        assert found.old_text == "22\n23\n24\n25\n26\n27\n28\n"
        assert found.new_text == "22\n23\n24\nchanged\n26\n27\n28\n"


async def test_neither_links_nor_huge_files_are_read(tmp_path: Path) -> None:
    display = diff_display("a.txt", "a\n", "b\n")
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("b\n" + "x" * (1 << 20))
    link.symlink_to(real)
    for file in (real, link, tmp_path, tmp_path / "none"):
        shown = await make_edit(file, display, is_done=True)
        assert (shown.old_text, shown.new_text) == ("a\n", "b\n")
