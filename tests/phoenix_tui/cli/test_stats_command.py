"""`phoenix stats`: the count of the server, empty and hostile databases, and caps on spending in `phoenix -p`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Phoenix, phoenix_in, with_claude
from tests.support.counting_server import MODEL, CountingServer
from tests.support.loopback import serve
from tests.support.program import program
from tests.support.storage import query

GROUPS = ("day", "model", "project", "conversation", "tool", "agent", "purpose")


async def test_every_group_says_what_the_server_counted(tmp_path: Path) -> None:
    server = CountingServer()
    async with serve(server) as loopback:
        phoenix = with_claude(tmp_path, loopback.url)
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


async def test_the_lines_read_the_same_rows(tmp_path: Path) -> None:
    server = CountingServer()
    async with serve(server) as loopback:
        phoenix = with_claude(tmp_path, loopback.url)
        assert (await phoenix.run("-p", "plain")).code == 0
        async with program(phoenix, "--screen-reader", rows=100, columns=300) as running:
            await running.shows("You:")
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


async def test_a_continued_conversation_that_a_cap_refuses_is_named_and_unchanged(tmp_path: Path) -> None:
    server = CountingServer()
    async with serve(server) as loopback:
        phoenix = with_claude(tmp_path, loopback.url)
        first = await phoenix.run("-p", "--output-format", "json", "plain")
        phoenix = await capped(phoenix, PHOENIX_BUDGET_DAY_USD="0.000001")
        before = query(phoenix.home / "phoenix.db", "SELECT id, text FROM messages")
        refused = await phoenix.run("-p", "-c", "--output-format", "json", "more")
        assert (refused.code, refused.json["session_id"]) == (53, first.json["session_id"])
        assert (refused.json["total_cost_usd"], refused.json["result"]) == (0.0, "")
        assert query(phoenix.home / "phoenix.db", "SELECT id, text FROM messages") == before


async def test_a_file_of_a_project_lowers_a_cap_and_never_raises_it(tmp_path: Path) -> None:
    server = CountingServer()
    async with serve(server) as loopback:
        phoenix = with_claude(tmp_path, loopback.url)
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
