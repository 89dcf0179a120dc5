"""`phoenix doctor --bundle`: contents shown and agreed to, no key and no transcript in it, never over another file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, phoenix_in
from tests.support.program import program
from tests.support.storage import ROOT

KEY = "sk-ant-planted-0123456789"
ODD = 'odd "key" value'
WORDS = "the secret plan of the user"


@pytest.fixture
def phoenix(tmp_path: Path) -> Phoenix:
    made = phoenix_in(tmp_path, ANTHROPIC_API_KEY=KEY, OPENAI_API_KEY=ODD)
    (made.home / "config.toml").write_text(
        f"""max_turns = 7
append_system_prompt = "{WORDS}"
[providers.work]
base_url = "https://user:{KEY}@models.example.com/v1?key={KEY}"
headers = {{ "X-Team-Key" = "plain-header-secret" }}
query = {{ token = "plain-query-secret" }}
extra_body = {{ user = "plain-body-secret" }}
"""
    )
    logs = made.home / "logs"
    logs.mkdir(mode=0o700)
    lines = [{"message": f"line {number} {ODD} Authorization: Bearer {KEY}"} for number in range(20_000)]
    (logs / "phoenix.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    failure: dict[str, object] = {
        "model": "m",
        "kind": "server",
        "message": f"refused {KEY}",
        "system": [WORDS],
        "tools": ["bash"],
    }
    failure["messages"] = [{"role": "user", "content": WORDS}]
    for number in range(8):
        (logs / f"llm_api_error_2026010{number}-000000-000000.json").write_text(json.dumps(failure))
    (logs / "llm_api_error_20260109-000000-000000.json").write_text("{broken")
    (logs / "last_messages.jsonl").write_text(WORDS)
    (logs / "llm_responses.jsonl").write_text(WORDS)
    return made


async def test_the_archive_has_no_key_and_no_transcript(phoenix: Phoenix, tmp_path: Path) -> None:
    ran = await phoenix.run("doctor", "--bundle", str(tmp_path / "out.zip"), "--yes")
    assert ran.code == 0
    assert (tmp_path / "out.zip").stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    failures = {f"failure-{number}.json" for number in range(1, 5)}
    assert set(parts) == {"doctor.txt", "settings.json", "log.jsonl", *failures}
    for name in parts:
        assert name in ran.out
    whole = "".join(parts.values())
    hidden = (KEY, KEY[7:], ODD, json.dumps(ODD)[1:-1], WORDS, "header-secret", "query-secret", "body-secret")
    assert not [secret for secret in hidden if secret in whole]
    settings = json.loads(parts["settings.json"])
    assert settings["settings"]["max_turns"] == 7
    assert settings["settings"]["append_system_prompt"] == f"[{len(WORDS)} characters]"
    assert settings["providers"] == [
        {"name": "work", "kind": "openai", "preset": "", "address": "https://models.example.com"}
    ]
    assert len(parts["log.jsonl"]) < 300_000
    assert "line 19999" in parts["log.jsonl"]
    assert json.loads(parts["failure-1.json"])["tools"] == ["bash"]
    assert "sqlite" in parts["doctor.txt"]


async def test_without_a_terminal_nothing_is_written_unless_it_is_agreed_to(phoenix: Phoenix) -> None:
    ran = await phoenix.run("doctor", "--bundle")
    assert ran.code == 2
    assert "doctor.txt" in ran.out
    assert ran.err == "phoenix: Nothing was written: without a terminal to ask, add --yes.\n"
    assert not list(phoenix.cwd.iterdir())
    made = (await phoenix.run("doctor", "--bundle", "--yes", "--json")).json
    assert [path.name for path in phoenix.cwd.iterdir()] == [made["file"]]
    assert {part["name"] for part in made["parts"]} >= {"doctor.txt", "settings.json"}


async def test_on_a_terminal_it_asks(phoenix: Phoenix) -> None:
    for answer, count in (("n", 0), ("y", 1)):
        async with program(phoenix, "doctor", "--bundle", "b.zip", rows=60, columns=160) as running:
            await running.shows("settings.json", "Write these files to b.zip? [y/N]")
            running.type(f"{answer}\r")
            await running.shows("Nothing was written." if not count else "Written to b.zip.")
        assert len(list(phoenix.cwd.iterdir())) == count


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "folder", "device"])
async def test_nothing_that_is_there_is_replaced_or_written_through(phoenix: Phoenix, kind: str) -> None:
    target, victim = phoenix.cwd / "out.zip", phoenix.cwd / "victim"
    if kind == "file":
        target.write_text("mine")
    elif kind == "folder":
        target.mkdir()
    else:
        victim.write_text("mine")
        ends = {"link": victim, "dangling": phoenix.cwd / "none", "device": Path("/dev/full")}
        target.symlink_to(ends[kind])
    ran = await phoenix.run("doctor", "--bundle", str(target), "--yes")
    assert (ran.code, ran.err) == (2, f"phoenix: {target} already exists; give another file name.\n")
    assert not (phoenix.cwd / "none").exists()
    assert kind != "file" or target.read_text() == "mine"


FULL = """
import resource, signal
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.doctor import BundlePart, write_bundle
import os
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
write_bundle([BundlePart("a", os.urandom(5_000))], CommandArguments("doctor", bundle="out.zip", yes=True))
"""


def test_a_full_disk_leaves_no_half_archive(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", FULL],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr.splitlines()[-1].endswith("out.zip cannot be written: File too large.")
    assert not list(tmp_path.iterdir())


async def test_a_folder_that_is_not_there_is_one_sentence(phoenix: Phoenix) -> None:
    ran = await phoenix.run("doctor", "--bundle", "none/out.zip", "--yes")
    assert (ran.code, ran.err) == (1, "phoenix: none/out.zip cannot be written: No such file or directory.\n")


async def test_the_lines_list_and_read_the_records(phoenix: Phoenix) -> None:
    async with program(phoenix, "--screen-reader", rows=200, columns=200) as running:
        await running.shows("You:")
        running.type("/debug phoenix.db\r")
        await running.shows("There is no file phoenix.db here; /debug lists all.")
        running.type("/debug llm_responses.jsonl\r")
        await running.shows(WORDS)
        running.type("/debug\r")
        await running.shows("Files for debugging, newest first", "last_messages.jsonl")
