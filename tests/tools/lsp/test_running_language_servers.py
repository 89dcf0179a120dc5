"""Language servers: programs and roots, bounded frames, their checks, and faults that harm nothing but themselves."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.git_repositories import empty_repository
from tests.support.language_servers import CLEAN, LONG, PYTHON, WRONG, one_server, scripted
from tests.support.waiting import poll
from tools.displays import CodeProblem
from tools.lsp.client import (
    MOST_BODY,
    MOST_HEAD,
    MOST_OPEN,
    MOST_WAITING,
    FrameChannel,
    FrameError,
    StalledError,
    length_of,
)
from tools.lsp.definitions import KNOWN_SERVERS, program_of, root_of, server_environment, with_packages
from tools.lsp.problems import HIDDEN, LONGEST_MESSAGE, MOST, MOST_SHOWN, LanguageServerState, start_failure
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


@dataclass
class Ends:
    """A channel, and the ends of its pipes that a server would have."""

    channel: FrameChannel
    feed: int
    drain: int

    def close_feed(self) -> None:
        os.close(self.feed)
        self.feed = -1


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    reader, feed = os.pipe()
    drain, writer = os.pipe()
    made = Ends(FrameChannel(reader, writer), feed, drain)
    yield made
    made.channel.close()
    for descriptor in (reader, writer, made.feed, made.drain):
        if descriptor >= 0:
            os.close(descriptor)


def frame(body: bytes, head: bytes = b"Content-Length: %d\r\n\r\n") -> bytes:
    return head % len(body) + body


async def test_a_message_is_read_whatever_the_pieces_it_comes_in(ends: Ends) -> None:
    raw = frame(b'{"a":"\xc3\xa4"}') + frame(b'{"b":[1]}', b"Content-Type: x\r\ncontent-length:%d \r\n\r\n")
    reading = asyncio.create_task(ends.channel.read())
    for byte in raw[:30]:
        os.write(ends.feed, bytes((byte,)))
        await asyncio.sleep(0)
    os.write(ends.feed, raw[30:])
    assert await reading == {"a": "ä"}
    assert await ends.channel.read() == {"b": [1]}
    ends.close_feed()
    assert await ends.channel.read() is None


@pytest.mark.parametrize("body", [b"[1]", b"no json", b"\xff\xfe", b'{"a":' + b"[" * 50_000, b'"\\ud800"'])
async def test_a_body_that_is_no_object_is_an_empty_message_and_the_next_one_is_read(ends: Ends, body: bytes) -> None:
    writing = asyncio.create_task(asyncio.to_thread(os.write, ends.feed, frame(body) + frame(b'{"b":1}')))
    assert await ends.channel.read() == {}
    assert await ends.channel.read() == {"b": 1}
    await writing


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"this is no frame", "without a length"),
        (b"Content-Length: -5", "without a length"),
        (b"Content-Length: 5\r\nContent-Length: 6", "without a length"),
        (b"Content-Length: \xb2", "without a length"),
        (b"Content-Length: %d" % (MOST_BODY + 1), "too large"),
        (b"Content-Length: " + b"9" * 3_000, "too large"),
        (b"X: " + b"x" * MOST_HEAD, "does not end"),
    ],
)
async def test_a_hostile_head_is_refused_before_its_body(ends: Ends, head: bytes, why: str) -> None:
    os.write(ends.feed, head + b"\r\n\r\n")
    with pytest.raises(FrameError, match=why):
        await ends.channel.read()


async def test_a_head_without_an_end_is_given_up_after_its_limit(ends: Ends) -> None:
    os.write(ends.feed, b"x" * 60_000)
    with pytest.raises(FrameError, match="does not end"):
        await ends.channel.read()


async def test_an_end_within_a_message_is_the_end(ends: Ends) -> None:
    os.write(ends.feed, b'Content-Length: 50\r\n\r\n{"a":')
    ends.close_feed()
    assert await ends.channel.read() is None


async def test_messages_are_written_whole_and_in_order_to_a_slow_reader(ends: Ends) -> None:
    sent = [{"number": number, "text": "x" * 50_000} for number in range(20)]
    for message in sent:
        ends.channel.send(message)
    received = bytearray()

    def read() -> bool:
        with contextlib.suppress(BlockingIOError):
            received.extend(os.read(ends.drain, 1_000_000))
        return received.count(b"Content-Length") == 20 and received.endswith(b"}")

    os.set_blocking(ends.drain, False)
    assert await poll(read)
    found: list[Any] = []
    while received:
        head, _, rest = bytes(received).partition(b"\r\n\r\n")
        found.append(json.loads(rest[: length_of(head)]))
        received = bytearray(rest[length_of(head) :])
    assert found == sent


async def test_a_server_that_never_reads_is_noticed_at_a_bound(ends: Ends) -> None:
    message = {"text": "x" * (1 << 20)}
    with pytest.raises(StalledError):
        for _ in range(2 * MOST_WAITING // (1 << 20)):
            ends.channel.send(message)


async def test_closing_ends_a_read_that_waits(ends: Ends) -> None:
    reading = asyncio.create_task(ends.channel.read())
    await asyncio.sleep(0)
    ends.channel.close()
    assert await reading is None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    async def read() -> None:
        reader, feed = os.pipe()
        drain, writer = os.pipe()
        channel = FrameChannel(reader, writer)
        os.write(feed, raw + b"\r\n\r\n" + raw)
        os.close(feed)
        with contextlib.suppress(FrameError):
            while await channel.read() is not None:
                pass
        channel.close()
        for descriptor in (reader, drain, writer):
            os.close(descriptor)

    asyncio.run(read())


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    empty_repository(tmp_path / "project")
    monkeypatch.setenv("PATH", f"{tmp_path}/project/tools:/usr/bin:/bin")
    return tmp_path / "project"


def test_a_program_of_the_project_is_found_after_the_yes_alone(project: Path) -> None:
    server = scripted("pull", command=("checker", "--stdio"), project_command=(".venv/bin",))
    for place in (".venv/bin/checker", "tools/checker"):
        planted = executable(project / place)
        assert program_of(server, project, project, allowed=False) == ()
        assert program_of(server, project, project, allowed=True) == (str(planted), "--stdio")
        planted.unlink()
    assert program_of(server, project, project, allowed=True) == ()


def test_an_absolute_path_counts_where_it_leads_out_of_the_project(project: Path) -> None:
    planted = executable(project / "checker")
    link = project.parent / "link"
    link.symlink_to(planted)
    for path in (str(planted), str(link), "./checker", "tools/checker"):
        assert program_of(scripted("pull", command=(path,)), project, project, allowed=False) == ()
    executable(project / ".venv" / "bin" / Path(PYTHON).name)
    for allowed in (False, True):
        server = scripted("pull", command=(PYTHON,), project_command=(".venv/bin",))
        assert program_of(server, project, project, allowed=allowed) == (PYTHON,)
    assert program_of(scripted("pull", command=(str(planted),)), project, project, allowed=True) == (str(planted),)


def test_no_list_of_folders_leads_into_the_project_before_the_yes(project: Path) -> None:
    given = {"PATH": f"{project}/tools:/usr/bin", "NODE_PATH": f"{project}/node_modules:/usr/lib/node", "HOME": "/h"}
    confined = server_environment(given, project, allowed=False)
    assert confined["NODE_PATH"] == "/usr/lib/node"
    assert str(project) not in "".join(confined.values())
    assert server_environment(given, project, allowed=True) == {}


def test_packages_of_the_project_are_used_after_the_yes_and_not_missed_before(project: Path) -> None:
    server = scripted("pull", unresolved=("missing",), settings={"python": {"analysis": {"a": 1}}})
    assert with_packages(server, project, project, allowed=True) == server
    (project / ".venv").mkdir()
    (project / ".venv" / "pyvenv.cfg").touch()
    assert with_packages(server, project, project, allowed=False).passed_over == ("missing",)
    allowed = with_packages(server, project, project, allowed=True)
    assert allowed.settings["python"] == {"pythonPath": f"{project}/.venv/bin/python", "analysis": {"a": 1}}
    assert with_packages(scripted("pull"), project, project, allowed=False).passed_over == ()


def test_the_root_is_the_outermost_folder_with_a_mark(project: Path) -> None:
    server = scripted("pull", roots=("mark",))
    file = project / "a" / "b" / "c.py"
    assert root_of(server, file, project) == project
    (project / "a" / "b").mkdir(parents=True)
    (project / "a" / "b" / "mark").touch()
    assert root_of(server, file, project) == project / "a" / "b"
    (project / "a" / "mark").touch()
    assert root_of(server, file, project) == project / "a"


PROGRAMS = Path(sys.executable).parent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code"), [("pyright", "reportUndefinedVariable"), ("ruff", "F821")], ids=["pyright", "ruff"]
)
async def test_an_undefined_name_is_told_once_and_moves_with_its_line(tmp_path: Path, name: str, code: str) -> None:
    server = next(one for one in KNOWN_SERVERS if one.name == name)
    program = PROGRAMS / server.command[0]
    if not program.exists():
        pytest.skip(f"{name} is not installed here")
    async with one_server(tmp_path, replace(server, command=(str(program), *server.command[1:]))) as one:
        assert (await one.edit("text = '\U0001f600'\n")).errors == 0
        check = await one.edit("text = '\U0001f600'; text = nowhere\n")
        assert [(found.line, found.column, found.code) for found in check.problems] == [(1, 20, code)]
        assert (await one.edit("\n\ntext = '\U0001f600'; text = nowhere\n")).errors == 0
        assert (await one.edit("text = 1\n")).errors == 0


def test_a_program_that_the_sandbox_hides_is_named(tmp_path: Path) -> None:
    error = OSError(errno.ENOENT, "No such file or directory")
    assert start_failure(error, sys.executable, is_confined=True) == HIDDEN.format(program=sys.executable)
    assert start_failure(error, str(tmp_path / "gone"), is_confined=True).endswith("No such file or directory")
    assert start_failure(error, sys.executable, is_confined=False).endswith("No such file or directory")
