"""Principle 5: `@` opens nothing that read_file and read_image would not open without a question, and never waits."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.executor.attaching import MOST_LOOKED_FOR, find_named_files
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import ImageBlock, find_attachments
from engine.permissions.rules import KeptRule
from engine.ports import ConversationChanges
from engine.records import PermissionMode
from tests.engine.test_attaching import chips, reading, said, sent
from tests.support.bounded import within
from tools.contract import SandboxMode

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes and devices as Linux has them")


def linked(place: Path, target: Path) -> None:
    place.symlink_to(target)


def piped(place: Path) -> None:
    os.mkfifo(place)


def listening(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (piped, "not attached: odd is not a regular file but a pipe, device or socket"),
    "socket": (listening, "not attached: odd is not a regular file but a pipe, device or socket"),
    "link out": (lambda place: linked(place, Path("/etc/hostname")), "not attached: /etc/hostname is outside"),
    "device": (lambda place: linked(place, Path("/dev/zero")), "not attached: /dev/zero is outside"),
    "own memory": (lambda place: linked(place, Path("/proc/self/environ")), "not attached: /proc/"),
    "binary": (lambda place: place.write_bytes(b"\0\1\2" * 99), "not attached: odd is a binary file (297 bytes)"),
}


@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN])
@pytest.mark.parametrize(("make", "told"), ODD.values(), ids=ODD)
async def test_what_is_no_file_of_this_folder_costs_one_sentence(
    tmp_path: Path, make: Callable[[Path], object], told: str, mode: PermissionMode
) -> None:
    async with reading(tmp_path) as harness, asyncio.timeout(20):
        make(harness.cwd / "odd")
        [chip] = chips(await sent(harness, "look at @odd", mode))
        assert chip.startswith(told)


async def test_a_huge_file_is_read_as_far_as_it_is_attached(tmp_path: Path) -> None:
    async with reading(tmp_path) as harness, asyncio.timeout(20):
        with (harness.cwd / "huge").open("wb") as file:
            file.write(b"line\n" * 3_000)
            file.truncate(2**40)
        [chip] = chips(await sent(harness, "@huge"))
        assert chip == "huge: first 2,000 lines"


async def test_an_image_that_is_none_and_one_beyond_the_limit_are_sentences(tmp_path: Path) -> None:
    async with reading(tmp_path) as harness, asyncio.timeout(20):
        with (harness.cwd / "huge.png").open("wb") as file:
            file.truncate(2**40)
        os.mkfifo(harness.cwd / "pipe.png")
        blocks = await sent(harness, "@huge.png @pipe.png")
        assert not any(isinstance(block, ImageBlock) for block in blocks)
        assert [chip.startswith("not attached: ") for chip in chips(blocks)] == [True, True]


@pytest.mark.parametrize("mode", list(PermissionMode))
@pytest.mark.parametrize("name", [".ssh/id_rsa", ".aws/credentials", ".netrc"])
async def test_places_of_keys_are_not_attached_in_any_mode(tmp_path: Path, name: str, mode: PermissionMode) -> None:
    settings = EngineSettings(home=tmp_path / "project")  # the worst case: Phoenix was started in the home folder
    async with reading(tmp_path, settings=settings) as harness:
        (harness.cwd / name).parent.mkdir(exist_ok=True)
        (harness.cwd / name).write_text("SECRET\n")
        (harness.cwd / "innocent.txt").symlink_to(harness.cwd / name)
        blocks = await sent(harness, f"@{name} @innocent.txt", mode)
        assert "SECRET" not in repr(blocks)
        assert [chip.split(":")[0] for chip in chips(blocks)] == ["not attached"]


async def test_phoenixs_own_files_are_never_attached_even_by_a_rule(tmp_path: Path) -> None:
    own = tmp_path / "project" / "state"
    settings = EngineSettings(own=(own,))
    async with reading(tmp_path, settings=settings) as harness:
        own.mkdir()
        (own / "credentials.toml").write_text("SECRET\n")
        harness.rules.add(KeptRule("read_file(*)", 0.0, ""))
        blocks = await sent(harness, "@state/credentials.toml", PermissionMode.AUTO)
        assert "SECRET" not in repr(blocks)
        assert chips(blocks) == ["not attached: state/credentials.toml belongs to Phoenix itself"]


@pytest.mark.parametrize("sandbox", list(SandboxMode))
async def test_a_file_outside_is_attached_only_where_read_file_would_not_ask(
    tmp_path: Path, sandbox: SandboxMode
) -> None:
    outside = tmp_path / "notes.txt"
    outside.write_text("OUTSIDE\n")
    there: list[PermissionMode] = []
    async with reading(tmp_path) as harness:
        for mode in PermissionMode:
            conversation = await harness.conversation(mode)
            await conversation.change(ConversationChanges(sandbox=sandbox))
            blocks = await said(harness, conversation, f"see @{outside} and @../notes.txt")
            assert len(chips(blocks)) == 1
            there += [mode] if "OUTSIDE" in repr(blocks) else []
    assert there == ([PermissionMode.AUTO] if sandbox is SandboxMode.OFF else [])


async def test_names_and_contents_cannot_speak_for_the_user(tmp_path: Path) -> None:
    async with reading(tmp_path) as harness:
        odd = "a\x1b[2J\u202eb.txt"
        (harness.cwd / odd).write_text("text\n")
        [file] = find_attachments(await sent(harness, f'@"{odd}"'))
        assert "\x1b" not in file.text + file.attached
        assert "\u202e" not in file.text + file.attached


def test_a_paste_full_of_at_signs_is_looked_through_in_bounded_time(tmp_path: Path) -> None:
    (tmp_path / "late").write_text("text")
    words = [f"@w{number}" for number in range(300_000)]
    many = " ".join([*words, "@late"])
    hostile = (many, '@"' * 200_000, '@" ' * 200_000, "@" * 500_000, "(@" * 300_000, '@"' + "x" * 2_000_000)
    within(20, lambda: [find_named_files(text, tmp_path) for text in hostile])
    assert find_named_files(many, tmp_path) == []
    assert find_named_files(" ".join([*words[: MOST_LOOKED_FOR - 1], "@late"]), tmp_path) == [tmp_path / "late"]
