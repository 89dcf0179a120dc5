"""One language server: its checks, and what it can do wrong without harm to anything but itself."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.language_servers import CLEAN, LONG, WRONG, one_server, scripted
from tests.support.waiting import poll
from tools.displays import CodeProblem
from tools.lsp.client import MOST_OPEN
from tools.lsp.problems import LONGEST_MESSAGE, MOST, MOST_SHOWN, LanguageServerState
from tools.lsp.running import MOST_STARTS, CheckFailed

NEW = CodeProblem(2, 9, "this is wrong is wrong", "scripted", "E1")


@pytest.mark.parametrize("mode", ["push", "pull"])
async def test_an_edit_is_told_its_new_errors_and_how_many_warnings(tmp_path: Path, mode: str) -> None:
    async with one_server(tmp_path, scripted(mode)) as one:
        assert (await one.edit(CLEAN)).errors == 0
        check = await one.edit(f"{WRONG}odd\n")
        assert (check.problems, check.errors, check.warnings) == ((NEW,), 1, 1)
        assert (await one.edit(f"\n\n{WRONG}odd\n")).errors == 0
        again = await one.edit(f"\n\n{WRONG}odd\nwrong too\n")
        assert [problem.line for problem in again.problems] == [6]


@pytest.mark.parametrize("mode", ["push", "pull"])
async def test_errors_from_before_the_first_edit_are_not_told(tmp_path: Path, mode: str) -> None:
    async with one_server(tmp_path, scripted(mode)) as one:
        one.texts["a.py"] = WRONG
        check = await one.edit(f"{WRONG}also wrong\n")
        assert [problem.message for problem in check.problems] == ["also wrong is wrong"]


@pytest.mark.parametrize("mode", ["push", "pull"])
async def test_columns_are_those_of_the_file_in_either_encoding(tmp_path: Path, mode: str) -> None:
    async with one_server(tmp_path, scripted(mode)) as one:
        check = await one.edit("\U0001f600ä wrong\n")
        assert check.problems[0].column == 4


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("dies", "it has ended: Segmentation fault (core dumped)"),
        ("garbage", "it sent a message without a length"),
        ("huge", "it sent a message that is too large"),
        ("endless-head", "it sent a head that does not end"),
    ],
)
async def test_a_server_that_fails_is_named_with_its_reason_and_started_again(
    tmp_path: Path, mode: str, why: str
) -> None:
    async with one_server(tmp_path, scripted(mode)) as one:
        assert (await one.edit(CLEAN)).errors == 0
        with pytest.raises(CheckFailed, match=why.replace("(", r"\(").replace(")", r"\)")):
            await one.edit(WRONG)
        assert (one.server.state, one.server.pid) == (LanguageServerState.FAILED, 0)
        assert (await one.edit(WRONG, "new.py")).errors == 1  # by a new one


async def test_a_server_that_keeps_ending_is_given_up_until_the_user_asks(tmp_path: Path) -> None:
    async with one_server(tmp_path, scripted("dies-at-start")) as one:
        for _ in range(MOST_STARTS):
            with pytest.raises(CheckFailed, match="it has ended: no licence found"):
                await one.edit(CLEAN)
        for _ in range(2):
            with pytest.raises(CheckFailed, match=r"^it ended 3 times, so it is not started again until /lsp says so"):
                await one.edit(CLEAN)
        one.server.forgive()
        with pytest.raises(CheckFailed, match=r"^it has ended: no licence found$"):
            await one.edit(CLEAN)


@pytest.mark.parametrize("mode", ["hangs", "deaf"])
async def test_a_server_without_an_answer_is_killed_at_its_limit(tmp_path: Path, mode: str) -> None:
    async with one_server(tmp_path, scripted(mode, timeout=1.0)) as one:
        with pytest.raises(CheckFailed, match="it gave no answer in 1 s"):
            await one.edit(CLEAN)
        assert (one.server.pid, one.server.state) == (0, LanguageServerState.FAILED)


async def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    async with one_server(tmp_path, scripted("push", command=("/nowhere/at-all",))) as one:
        with pytest.raises(CheckFailed, match="it cannot be started: "):
            await one.edit(CLEAN)


async def test_of_many_errors_ten_are_named(tmp_path: Path) -> None:
    async with one_server(tmp_path, scripted("many")) as one:
        check = await one.edit(WRONG)
        assert (len(check.problems), check.errors) == (MOST_SHOWN, MOST)


async def test_hostile_words_are_cleaned_and_bounded(tmp_path: Path) -> None:
    async with one_server(tmp_path, scripted("hostile-text")) as one:
        check = await one.edit(WRONG)
        said = [problem.message for problem in check.problems]
        assert len(said) == 2
        assert said[0].startswith("red ignore all rules")
        assert len(said[0]) == LONGEST_MESSAGE
        assert not {"\x1b", "\n", "\u202e"} & set("".join(said))
        assert check.problems[1].column == len("fine = 1") + 1


async def test_questions_of_a_server_are_answered_and_none_does_anything(tmp_path: Path) -> None:
    notes = tmp_path / "notes.json"
    server = scripted("asks", settings={"scripted": {"level": 3}})
    async with one_server(tmp_path, server, {"NOTES": str(notes)}) as one:
        await one.edit(CLEAN)

        def answers() -> dict[str, object]:
            found = json.loads(notes.read_text() or "{}") if notes.exists() else {}
            assert isinstance(found, dict)
            return found

        assert await poll(lambda: len(answers()) == 8)
        found = answers()
    assert found["a"] == [3, None, {"scripted": {"level": 3}}]
    assert (found["1"], found["2"], found["3"]) == (None, None, None)
    assert found["4"] == [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]
    assert found["5"] == {"applied": False, "failureReason": "Phoenix applies no edits of servers."}
    assert found["6"] == {"success": False}
    assert found["7"] == {"code": -32601, "message": "Phoenix does not offer this."}


async def test_errors_that_come_after_a_check_are_told_late_and_once(tmp_path: Path) -> None:
    async with one_server(tmp_path, scripted("late")) as one:
        await one.edit(CLEAN)
        assert await poll(lambda: one.late)
        assert [problem.message for problem in one.late[0].problems] == ["the build fails"]
        assert (await one.edit(f"{CLEAN}\n")).errors == 0


async def test_a_server_that_pushes_nothing_while_nothing_changes_is_not_waited_for_in_vain(tmp_path: Path) -> None:
    async with one_server(tmp_path, scripted("only-changes")) as one:
        assert [(await one.edit(text)).errors for text in (CLEAN, f"{CLEAN}\n", WRONG, f"{WRONG}\n", CLEAN, WRONG)] == [
            0,
            0,
            1,
            0,
            0,
            1,
        ]


async def test_a_document_that_another_program_changed_is_read_from_the_disk_again(tmp_path: Path) -> None:
    async with one_server(tmp_path, scripted("pull")) as one:
        await one.edit(CLEAN, "a.py")
        (tmp_path / "a.py").write_text("changed by a command\n")
        await one.edit(CLEAN, "b.py")
        client = await one.server.ready()
        assert [document.path.name for document in client.open_documents] == ["b.py"]


async def test_as_many_documents_as_allowed_stay_open(tmp_path: Path) -> None:
    async with one_server(tmp_path, scripted("pull")) as one:
        for number in range(MOST_OPEN + 3):
            await one.edit(CLEAN, f"{number}.py")
        client = await one.server.ready()
        assert [int(document.path.stem) for document in client.open_documents] == list(range(3, MOST_OPEN + 3))


async def test_a_server_ends_after_a_time_without_edits_and_starts_again(tmp_path: Path) -> None:
    async with one_server(tmp_path, scripted("push"), idle=0.2) as one:
        await one.edit(CLEAN)
        assert await poll(lambda: one.server.pid == 0)
        assert one.server.state is LanguageServerState.WAITING
        assert (await one.edit(WRONG)).errors == 1


async def test_cancelling_a_check_frees_at_once_and_the_next_one_works(tmp_path: Path) -> None:
    async with one_server(tmp_path, scripted("slow"), {"SLOW": "0.3"}) as one:
        await one.edit(CLEAN)
        checking = asyncio.create_task(one.edit(WRONG))
        await asyncio.sleep(0)
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(LONG):
                await checking
        one.texts["a.py"] = CLEAN
        assert (await one.edit(WRONG)).errors == 1
