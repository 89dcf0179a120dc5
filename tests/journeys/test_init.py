"""/init on the screen: the text, a yes, the file; with a model a message, and a question before the file is written."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import phoenix_in, with_claude
from tests.support.journeys import calls, says
from tests.support.loopback import serve
from tests.support.program import ESC, program
from tests.support.waiting import typing_guard


async def test_the_guide_writes_the_facts_after_a_yes(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.cwd / "go.mod").write_text("module x\n")
    async with program(phoenix) as running:
        await running.ready()
        (phoenix.cwd / "CLAUDE.md").write_text("Use tabs.\n")
        await running.send("/init")
        await running.shows("New AGENTS.md", "go test ./...")
        running.type(ESC)
        await running.shows("Write AGENTS.md?")
        assert not (phoenix.cwd / "AGENTS.md").exists()
        await typing_guard()
        running.type("y")
        await running.shows("AGENTS.md is written.")
    written = "# work\n\n## Commands\n\n- `go build ./...`\n- `go test ./...`\n"
    assert (phoenix.cwd / "AGENTS.md").read_text() == f"@CLAUDE.md\n\n{written}"


async def test_a_model_writes_it_with_its_tools_and_asks(tmp_path: Path) -> None:
    answers = (calls("write_file", path="AGENTS.md", content="# Work\n"), says("Written."))
    async with serve(*answers) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            (phoenix.cwd / "CLAUDE.md").write_text("Use tabs.\n")
            await running.send("/init")
            await running.shows("wants to create AGENTS.md", "y once")
            await typing_guard()
            running.type("y")
            await running.shows("Written.")
        assert (phoenix.cwd / "AGENTS.md").read_text() == "# Work\n"
        assert "line `@CLAUDE.md`, which adds that file to it" in str(server.requests[0].json["messages"])
