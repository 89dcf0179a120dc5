"""Further folders of an editor's session: read without a question as long as the session is open, never written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from phoenix_tui.config.rules import MOST_FOLDERS, session_rules
from tests.support.acp_client import NO_SERVERS, Opened, connected, option, replies
from tests.support.cli import with_claude
from tests.support.journeys import calls, says
from tests.support.loopback import serve


async def begun(opened: Opened, *folders: Path) -> Opened:
    """The same with a new session of these folders."""
    session = await opened.agent.new_session(
        cwd=str(opened.phoenix.cwd), mcp_servers=NO_SERVERS, additional_directories=[str(one) for one in folders]
    )
    return replace(opened, session_id=session.session_id)


async def test_files_of_a_further_folder_are_read_without_a_question_and_written_with_one(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("from outside")
    reads, writes = calls("read_file", path=str(docs / "a.txt")), calls("write_file", path=str(docs / "b"), content="x")
    async with (
        serve(replies(reads, writes, says("Done."))) as server,
        connected(with_claude(tmp_path, server.url)) as opened,
    ):
        opened.editor.choose = option("reject_once")
        session = await begun(opened, docs, tmp_path / "none")
        await session.says("Go")
        asked = [call.raw_input for call, _ in opened.editor.asked]
        assert f"The folder {tmp_path / 'none'} cannot be added: there is none." in opened.editor.text
    assert [one.get("content") for one in asked] == ["x"]
    assert not (docs / "b").exists()


async def test_a_session_that_closes_takes_its_folders_with_it(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("from outside")
    reads = calls("read_file", path=str(docs / "a.txt"))
    async with (
        serve(replies(reads, says("Read."), reads, says("Asked."))) as server,
        connected(with_claude(tmp_path, server.url)) as opened,
    ):
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
