"""/init: the model is asked in one message; the guide writes the facts after a yes and never over a file unasked."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import phoenix_in, with_claude
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.program import program

ROWS = 200
"""Rows of a terminal on which nothing scrolls away during a test."""


async def test_the_guide_shows_the_facts_and_writes_them_after_a_yes(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.cwd / "Makefile").write_text("test:\n\ttrue\n")
    path = phoenix.cwd / "AGENTS.md"
    async with program(phoenix, "--screen-reader", rows=ROWS) as running:
        await running.shows("You:")
        running.type("/init\r")
        await running.shows("- `make test`", "Write AGENTS.md?", "1. leave it", "2. write it")
        running.type("1\r")
        await running.until(lambda: running.words.endswith("You:"), "it is left")
        assert not path.exists()
        running.type("/init\r2\r")
        await running.shows("AGENTS.md is written.")
        assert path.read_text() == "# work\n\n## Commands\n\n- `make test`\n"
        running.type("/init\r")
        await running.shows("AGENTS.md contains these facts already.")
        path.write_text("Mine.\n")
        running.type("/init\r")
        await running.shows("-Mine.", "+# work", "Replace the existing AGENTS.md?")
        running.type("\r")
        await running.until(lambda: running.words.endswith("You:"), "it is left")
    assert path.read_text() == "Mine.\n"


async def test_a_file_that_leads_elsewhere_is_not_replaced(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (tmp_path / "outside").write_text("Mine.\n")
    (phoenix.cwd / "AGENTS.md").symlink_to(tmp_path / "outside")
    async with program(phoenix, "--screen-reader", rows=ROWS) as running:
        await running.shows("You:")
        running.type("/init\r")
        await running.shows("Refused: AGENTS.md")
    assert (tmp_path / "outside").read_text() == "Mine.\n"


async def test_a_model_is_asked_for_the_file_in_one_visible_message(tmp_path: Path) -> None:
    async with serve(says("I look first.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.cwd / "go.mod").write_text("module x\n")
        async with program(phoenix, "--screen-reader", rows=ROWS) as running:
            await running.shows("You:")
            running.type("/init\r")
            await running.shows("Write AGENTS.md in the working directory", "- `go test ./...`", "I look first.")
        said = json.dumps(server.requests[0].json["messages"])
        assert said.count("Write AGENTS.md in the working directory") == 1
        assert not (phoenix.cwd / "AGENTS.md").exists()


async def test_a_file_that_a_rule_denies_to_read_gives_no_fact_and_is_not_replaced(tmp_path: Path) -> None:
    async with serve(says("I look first.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.cwd / "README.md").write_text("A secret plan.\n")
        (phoenix.cwd / "go.mod").write_text("module x\n")
        denied = ("--disallowed-tools", "read_file(README.md),read_file(AGENTS.md)")
        async with program(phoenix, "--screen-reader", *denied, rows=ROWS) as running:
            await running.shows("You:")
            (phoenix.cwd / "AGENTS.md").write_text("Mine.\n")
            running.type("/init\r")
            await running.shows("I look first.")
        said = json.dumps(server.requests[0].json["messages"])
        assert "secret plan" not in said
        assert "`go test ./...`" in said
    (tmp_path / "guide").mkdir()
    guide = phoenix_in(tmp_path / "guide")
    async with program(guide, "--screen-reader", "--disallowed-tools", "read_file(AGENTS.md)", rows=ROWS) as running:
        await running.shows("You:")
        (guide.cwd / "AGENTS.md").write_text("Mine.\n")
        running.type("/init\r")
        await running.shows("A rule denies to read AGENTS.md")
    assert (guide.cwd / "AGENTS.md").read_text() == "Mine.\n"
