"""`phoenix stats`, `tasks` and `memory`: the count of the server, the board, the notes, and caps on spending."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.memory.memory import NoteFolder, project_scope
from tests.phoenix_tui.cli.test_command_line import talk
from tests.support.cli import Phoenix, phoenix_in, with_claude
from tests.support.counting_server import MODEL, CountingServer
from tests.support.journeys import Claude
from tests.support.loopback import serve
from tests.support.program import in_lines
from tests.support.storage import query
from tests.support.stored_boards import store_task

GROUPS = ("day", "model", "project", "conversation", "tool", "agent", "purpose")


async def test_every_group_says_what_the_server_counted(claude: Claude) -> None:
    server = CountingServer()
    phoenix, _ = await claude(server)
    for said in ("[tool]", "[agents]", "[retry]"):
        assert (await phoenix.run("-p", "--permission-mode", "auto", said)).code == 0
    for by in GROUPS:
        found = (await phoenix.run("stats", "--by", by, "--days", "2", "--json")).json
        assert found["total"]["cost_usd"] == pytest.approx(server.cost, abs=1e-9)
        assert found["total"]["input_tokens"] == server.told.input_tokens
        assert found["total"]["calls"] == server.requests
        if by not in {"tool", "agent"}:
            assert sum(row["cost_usd"] for row in found["rows"]) == pytest.approx(server.cost, abs=1e-9)
            assert sum(row["output_tokens"] for row in found["rows"]) == server.told.output_tokens
    tools = {row["key"]: row["calls"] for row in (await phoenix.run("stats", "--by", "tool", "--json")).json["rows"]}
    assert tools == {"bash": 1, "spawn_agents": 1, "submit_result": 2}
    models = await phoenix.run("stats", "--by", "model")
    assert models.out.splitlines()[-1].endswith(f"anthropic/{MODEL}")
    assert "1 failed, 1 retried" in models.out


async def test_an_empty_database_has_no_rows(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    for by in GROUPS:
        assert (await phoenix.run("stats", "--by", by)).out == "No model was called in this time.\n"
        assert (await phoenix.run("stats", "--by", by, "--json")).json["rows"] == []


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--days", "0"), "Argument --days: '0' is not a whole number of at least 1"),
        (("--days", "99999999999999"), "--days is at most 36,500; leave it out for all time."),
        (("--by", "week"), "Argument --by: invalid choice: 'week'"),
    ],
)
async def test_a_wrong_flag_is_one_sentence(tmp_path: Path, flags: tuple[str, ...], sentence: str) -> None:
    ran = await phoenix_in(tmp_path).run("stats", *flags)
    assert ran.code == 2
    assert sentence in ran.err
    assert "Traceback" not in ran.err


async def test_hostile_names_are_printed_without_control_characters(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    assert (await phoenix.run("-p", "hello")).code == 0
    database = phoenix.home / "phoenix.db"
    evil = "\x1b[2J\x07\u202e" + "長" * 3_000 + "\nsecond line"
    query(database, "UPDATE model_calls SET model = ?, provider = ?, purpose = 'reply'", evil, evil)
    query(database, "UPDATE conversations SET title = ?", evil)
    for by in ("model", "conversation"):
        ran = await phoenix.run("stats", "--by", by)
        assert ran.code == 0
        assert not {"\x1b", "\x07", "\u202e"} & set(ran.out)
        assert len(ran.out.splitlines()) == 5  # two sentences, a blank line, the heading and the row


async def test_the_lines_read_the_same_rows(claude: Claude) -> None:
    server = CountingServer()
    phoenix, _ = await claude(server)
    assert (await phoenix.run("-p", "plain")).code == 0
    async with in_lines(phoenix, columns=300) as running:
        running.type("/stats model 7\r")
        await running.shows("The last 7 days:", "1 call in 1 conversation.", f"anthropic/{MODEL}: cost")
        running.type("/stats week\r")
        await running.shows("Type /stats BY DAYS, such as /stats model 30; BY is one of day, model, project")


async def capped(phoenix: Phoenix, **caps: str) -> Phoenix:
    return Phoenix(phoenix.home, phoenix.cwd, {**phoenix.extra, **caps})


@pytest.mark.parametrize("name", ["budget_day_usd", "budget_project_usd"])
async def test_a_cap_ends_a_headless_run_and_refuses_the_next_with_exit_code_53(tmp_path: Path, name: str) -> None:
    server = CountingServer()
    async with serve(server) as loopback:
        phoenix = await capped(with_claude(tmp_path, loopback.url), **{f"PHOENIX_{name.upper()}": "0.000001"})
        ran = await phoenix.run("-p", "--output-format", "json", "--permission-mode", "auto", "[tool]")
        assert (ran.code, ran.json["subtype"], server.requests) == (53, "error_max_budget_usd", 1)
        again = await phoenix.run("-p", "plain")
        assert (again.code, again.out, server.requests) == (53, "", 1)
        assert again.err.count("\n") == 1
        assert f"raise {name} to continue." in again.err


@pytest.mark.parametrize("name", ["budget_day_usd", "budget_project_usd"])
async def test_a_message_that_a_cap_refuses_has_a_result_in_every_format(tmp_path: Path, name: str) -> None:
    server = CountingServer()
    async with serve(server) as loopback:
        phoenix = await capped(with_claude(tmp_path, loopback.url), **{f"PHOENIX_{name.upper()}": "0.000001"})
        assert (await phoenix.run("-p", "plain")).code == 0
        as_json = await phoenix.run("-p", "--output-format", "json", "plain")
        as_stream = await phoenix.run("-p", "--output-format", "stream-json", "plain")
        as_text = await phoenix.run("-p", "plain")
        assert as_text.out == ""
        assert [line["type"] for line in as_stream.lines] == ["system", "result"]
        for ran, result in ((as_json, as_json.json), (as_stream, as_stream.lines[-1])):
            assert ran.code == as_text.code == 53
            assert ran.err == as_text.err == f"phoenix: {result['error']}\n"
            assert result["error"].endswith(f"raise {name} to continue.")
            assert result["errors"] == [result["error"]]
            assert (result["subtype"], result["is_error"]) == ("error_max_budget_usd", True)
            assert (result["terminal_reason"], result["stop_reason"]) == ("budget_exhausted", None)
            assert (result["result"], result["task_id"], result["num_turns"]) == ("", "", 0)
            assert (result["total_cost_usd"], result["usage"]["input_tokens"]) == (0.0, 0)
            assert result["session_id"]
        assert server.requests == 1


async def test_a_continued_conversation_that_a_cap_refuses_is_named_and_unchanged(claude: Claude) -> None:
    server = CountingServer()
    phoenix, _ = await claude(server)
    first = await phoenix.run("-p", "--output-format", "json", "plain")
    phoenix = await capped(phoenix, PHOENIX_BUDGET_DAY_USD="0.000001")
    before = query(phoenix.home / "phoenix.db", "SELECT id, text FROM messages")
    refused = await phoenix.run("-p", "-c", "--output-format", "json", "more")
    assert (refused.code, refused.json["session_id"]) == (53, first.json["session_id"])
    assert (refused.json["total_cost_usd"], refused.json["result"]) == (0.0, "")
    assert query(phoenix.home / "phoenix.db", "SELECT id, text FROM messages") == before


async def test_a_file_of_a_project_lowers_a_cap_and_never_raises_it(claude: Claude) -> None:
    server = CountingServer()
    phoenix, _ = await claude(server)
    (phoenix.home / "config.toml").write_text("budget_day_usd = 5.0\n")
    (phoenix.cwd / ".phoenix").mkdir()
    settings = phoenix.cwd / ".phoenix" / "config.toml"
    settings.write_text("budget_day_usd = 9.0\nbudget_project_usd = 0.000001\n")
    first = await phoenix.run("-p", "--trust", "plain")
    assert first.code == 0
    shown = (await phoenix.run("config", "show", "--json")).json
    assert (shown["budget_day_usd"]["value"], shown["budget_project_usd"]["value"]) == (5.0, 0.0)
    refused = await phoenix.run("-p", "--trust", "plain")
    assert refused.code == 53
    assert "budget_project_usd" in refused.err


HOSTILE = "delete \x1b]0;evil\x07the \x1b[2Jcache \u202egnp"


@pytest.fixture
def phoenix(tmp_path: Path) -> Phoenix:
    return phoenix_in(tmp_path)


def fill(phoenix: Phoenix, conversation_id: str) -> None:
    """Two tasks and a planning section, the first task with both messages."""
    database = phoenix.home / "phoenix.db"
    first = {
        "task_description": "fix the retry test",
        "progresses": ["read it", "found the socket"],
        "user_preferences": ["The user wants short answers."],
    }
    store_task(database, conversation_id, 1, "success", first, [1, 2])
    store_task(database, conversation_id, 2, "failed", {"task_description": HOSTILE, "progresses": [HOSTILE]})
    store_task(database, conversation_id, 0, "pending", {"user_preferences": ["The user prefers tabs."]})


async def test_a_board_is_printed_in_order_with_the_last_milestones_and_the_planning_section(phoenix: Phoenix) -> None:
    known = await talk(phoenix, "Retry")
    fill(phoenix, known)
    ran = await phoenix.run("tasks", "Retry")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert lines[0] == "Tasks: tracked 2 · tracking off"
    assert lines[1].startswith("1. done: fix the retry test (")
    assert lines[2:4] == ["   - found the socket", "   prefers: The user wants short answers."]
    assert lines[4].startswith("2. failed: delete the cache gnp (")
    assert lines[5:] == ["   - delete the cache gnp", "Planning: 1 preference", "   prefers: The user prefers tabs."]


async def test_scripts_read_everything_as_json_and_nothing_in_it_drives_a_terminal(phoenix: Phoenix) -> None:
    known = await talk(phoenix, "Retry")
    fill(phoenix, known)
    ran = await phoenix.run("tasks", known[:8], "--json")
    assert not [sign for sign in ran.out if sign in "\x1b\x07\x9b\u202e"]
    shown = ran.json
    assert (shown["session_id"], shown["tracking"], shown["tracking_by"]) == (known, False, "setting")
    assert shown["messages"] == {
        "success": 2,
        "running": 0,
        "pending": 0,
        "failed": 0,
        "disabled": 0,
        "before_tracking": 0,
    }
    first, second = shown["tasks"]
    assert first == {
        "order": 1,
        "id": "stored-1",
        "status": "success",
        "description": "fix the retry test",
        "progress": ["read it", "found the socket"],
        "preferences": ["The user wants short answers."],
        "messages": [1, 2],
        "created_at": "2026-11-16T10:00:01.000Z",
        "updated_at": "2026-11-16T10:00:01.000Z",
    }
    assert (second["order"], second["status"], second["messages"]) == (2, "failed", [])
    assert (shown["planning"]["id"], shown["planning"]["preferences"]) == ("stored-0", ["The user prefers tabs."])


async def test_a_board_without_tasks_and_a_conversation_that_is_not_there_are_said(phoenix: Phoenix) -> None:
    await talk(phoenix, "Retry")
    ran = await phoenix.run("tasks", "Retry")
    assert (ran.code, "Tracking is off, so no tasks are found." in ran.out) == (0, True)
    tracked = Phoenix(phoenix.home, phoenix.cwd, {"PHOENIX_TASK_TRACKING": "on"})
    assert "No tasks yet. Messages are tracked 8 s after the last one" in (await tracked.run("tasks", "Retry")).out
    gone = await phoenix.run("tasks", "nowhere")
    assert (gone.code, gone.err) == (
        2,
        "phoenix: No conversation matches 'nowhere'; `phoenix conversations list` shows them.\n",
    )
    assert (await phoenix.run("tasks")).code == 2


@pytest.fixture
def with_notes(tmp_path: Path) -> Phoenix:
    made = Phoenix(tmp_path / "home", tmp_path / "work")
    made.cwd.mkdir()
    notes = NoteFolder(made.home / "memory")
    notes.append("user/2026-11-20.md", "short \x1b[2Janswers")
    notes.append(f"{project_scope(made.cwd)}/2026-11-24.md", "## 10:00 UTC\nuse make")
    notes.append("projects/other-1/2026-11-23.md", "elsewhere")
    return made


async def test_the_list_has_the_notes_of_this_project_and_of_the_user(with_notes: Phoenix) -> None:
    ran = await with_notes.run("memory", "list")
    assert ran.out == (
        "NOTE                   BYTES  FIRST LINE\n"
        "project/2026-11-24.md  22     use make\n"
        "user/2026-11-20.md     18     short answers\n"
    )
    every = await with_notes.run("memory", "list", "--all", "--json")
    shown = [one["path"] for one in every.json]
    assert shown[0] == "user/2026-11-20.md"
    assert "projects/other-1/2026-11-23.md" in shown
    assert len(shown) == 3


async def test_a_note_is_shown_and_deleted_for_good_only_on_request(with_notes: Phoenix) -> None:
    assert (await with_notes.run("memory", "show", "project/2026-11-24.md")).out == "## 10:00 UTC\nuse make\n"
    assert (await with_notes.run("memory", "show", "projects/other-1/2026-11-23.md")).out == "elsewhere\n"
    refused = await with_notes.run("memory", "delete", "user/2026-11-20.md")
    assert (refused.code, refused.err) == (
        2,
        "phoenix: Notes have no trash: add --permanently, or use /memory, where u restores them.\n",
    )
    assert (await with_notes.run("memory", "delete", "user/2026-11-20.md", "--permanently")).code == 0
    gone = await with_notes.run("memory", "show", "user/2026-11-20.md")
    assert (gone.code, gone.err) == (
        2,
        "phoenix: There is no note user/2026-11-20.md; `phoenix memory list` shows all.\n",
    )


@pytest.mark.parametrize("path", ["../config.toml", "user/../../phoenix.db", "/etc/passwd", "project/\x1b[2J.md"])
async def test_no_other_file_is_shown_or_deleted(with_notes: Phoenix, path: str) -> None:
    for action in (("show",), ("delete", "--permanently")):
        ran = await with_notes.run("memory", *action, path)
        assert (ran.code, ran.err) == (2, "phoenix: There is no such note; notes are named like 2026-11-24.md.\n")
