"""`phoenix trace`: the tree of a run, by the id of the run or the name of its conversation, as text and as JSON."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import Phoenix, phoenix_in
from tests.support.storage import query

PROMPT = "run `echo built`"


async def ran(folder: Path) -> Phoenix:
    phoenix = phoenix_in(folder)
    assert (await phoenix.run("-p", PROMPT, "--permission-mode", "auto", "--name", "Builder")).code == 0
    return phoenix


async def test_a_conversation_names_its_newest_run_and_a_run_itself(tmp_path: Path) -> None:
    phoenix = await ran(tmp_path)
    shown = await phoenix.run("trace", "builder")
    head, *rows = shown.out.splitlines()
    assert head.startswith("success · ")
    assert "2 model calls, 1 tool call" in head
    assert [" ".join(row.split()[:3]) for row in rows] == [
        "✓ agent ━" + "━" * 33,
        *["✓ llm guide", "✓ tool bash"],
        "✓ llm guide",
    ]
    document = (await phoenix.run("trace", "builder", "--json")).json
    by_run = await phoenix.run("trace", document["run_id"][:8], "--json")
    assert by_run.json == document
    assert [(one["depth"], one["kind"]) for one in document["spans"]] == [
        (0, "agent"),
        (1, "llm"),
        (1, "tool"),
        (1, "llm"),
    ]
    tool = document["spans"][2]
    assert (tool["name"], tool["usage"], tool["message_seq"]) == ("bash", None, 2)
    assert "built" in tool["output"]


async def test_an_unknown_name_is_refused_in_a_sentence(tmp_path: Path) -> None:
    phoenix = await ran(tmp_path)
    found = await phoenix.run("trace", "nothing")
    assert (found.code, found.out) == (2, "")
    assert found.err == "phoenix: No conversation matches 'nothing'; `phoenix conversations list` shows them.\n"


async def test_a_verbose_run_keeps_the_request(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_TRACE_VERBOSE="1")
    assert (await phoenix.run("-p", PROMPT, "--permission-mode", "auto", "--name", "Builder")).code == 0
    kept = query(phoenix.home / "phoenix.db", "SELECT input_preview FROM spans ORDER BY started_at LIMIT 2")
    assert "echo built" in str(kept[0][0])
    assert "echo built" in str(kept[1][0])
