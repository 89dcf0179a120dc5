"""Records for debugging against planted keys, links, huge texts, a full disk and other purposes than a reply."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine import diagnostics
from engine.diagnostics import Diagnostics, DiagnosticsLevel
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import ImageBlock, Role, StopReason, TextBlock, ToolUseBlock, Usage
from engine.ports import ImageBytes, ModelMessage, ModelReply, ModelRequest, ProviderError
from engine.records.model_calls import CallPurpose
from tests.support.engine import engine_harness
from tests.support.scripted_provider import Fail, Reply, Script, ScriptedProvider, Text
from tests.support.storage import ROOT
from tools.redaction import MARGIN

KEY = "sk-ant-planted-0123456789"
OWN = 'my own "key" 1'
REPLY = ModelReply((TextBlock("hello"),), StopReason.END_TURN, Usage(3, 4), "m")


def asked(*texts: str, system: str = "system") -> ModelRequest:
    messages = tuple(ModelMessage(Role.USER, (TextBlock(text),)) for text in texts)
    return ModelRequest("m", (system,), messages)


def everything(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.iterdir())


def all_of_it(folder: Path) -> Diagnostics:
    return Diagnostics(folder, DiagnosticsLevel.REQUESTS, lambda: (OWN,))


def test_keys_planted_in_every_place_are_never_written(tmp_path: Path) -> None:
    kept, planted = all_of_it(tmp_path), f"{KEY} and {OWN} and Authorization: Basic abcdefgh12345"
    image = ImageBytes("image/png", b"\x89PNG" + b"i" * 4_000)
    call = ToolUseBlock("1", "bash", json.dumps({"command": f"curl -H 'x-api-key: {KEY}' {OWN}"}))
    blocks = (TextBlock(planted), ImageBlock("a", 1, 1), call)
    request = ModelRequest("m", (planted,), (ModelMessage(Role.USER, blocks),), images={"a": image})
    for purpose in CallPurpose:
        kept.replied(request, ModelReply(blocks, StopReason.END_TURN, Usage(1, 1), "m"), 1, purpose)
        kept.failed(request, ProviderError(planted, kind="server", retryable=False), purpose)
    written = everything(tmp_path)
    assert "[redacted]" in written
    for secret in (KEY, KEY[7:], OWN, json.dumps(OWN)[1:-1], "abcdefgh12345", "iiiiiiii"):
        assert secret not in written
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("level", "names"),
    [
        (DiagnosticsLevel.FAILURES, {"llm_api"}),
        (DiagnosticsLevel.REPLIES, {"llm_api", "llm_responses.jsonl", "last_messages.jsonl"}),
        (DiagnosticsLevel.REQUESTS, {"llm_api", "llm_responses.jsonl", "last_messages.jsonl", "llm_requests.jsonl"}),
    ],
)
def test_each_level_keeps_more(tmp_path: Path, level: DiagnosticsLevel, names: set[str]) -> None:
    kept = Diagnostics(tmp_path, level)
    kept.replied(asked("x"), REPLY, 1)
    kept.failed(asked("x"), ProviderError("x", kind="server", retryable=False))
    assert {path.name.split("_error_")[0] for path in tmp_path.iterdir()} == names


def test_a_link_at_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "logs"
    victim.write_text("mine")
    folder.mkdir(mode=0o700)
    for name in ("llm_responses.jsonl", "last_messages.jsonl", "llm_requests.jsonl", "phoenix.jsonl"):
        (folder / name).symlink_to(victim)
    kept = all_of_it(folder)
    kept.replied(asked("x"), REPLY, 1)
    assert victim.read_text() == "mine"
    assert kept.files() == ()
    with pytest.raises(OSError, match=r"phoenix\.jsonl"):
        kept.end_of("phoenix.jsonl")


def test_huge_texts_are_cut_and_all_files_together_are_bounded(tmp_path: Path) -> None:
    kept, huge = all_of_it(tmp_path), "word " * 600_000
    reply = ModelReply((TextBlock(huge),), StopReason.END_TURN, Usage(1, 1), "m")
    for _ in range(12):
        kept.replied(asked(*(huge for _ in range(5)), system=huge), reply, 1)
        kept.failed(asked(huge), ProviderError(huge, kind="server", retryable=False))
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert max(sizes.values()) < diagnostics.ROTATE_BYTES + 3 * diagnostics.LONGEST_ENTRY
    assert sum(sizes.values()) < 6 * diagnostics.ROTATE_BYTES
    assert len(kept.end_of("llm_responses.jsonl")) <= diagnostics.SHOWN_BYTES + MARGIN
    for line in (tmp_path / "llm_responses.jsonl").read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize("name", ["../phoenix.db", "/etc/passwd", "", "phoenix.db", "llm_responses.jsonl\x00"])
def test_no_other_file_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "phoenix.db").write_text("x")
    with pytest.raises(FileNotFoundError):
        all_of_it(tmp_path).end_of(name)


FULL = """
import resource, signal, sys
from pathlib import Path
from tests.engine.test_diagnostic_files import REPLY, all_of_it, asked
kept = all_of_it(Path(sys.argv[1]))
kept.replied(asked("first"), REPLY, 1)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
for _ in range(9):
    kept.replied(asked("word " * 2_000), REPLY, 1)
"""


def test_a_full_disk_loses_whole_records_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], cwd=ROOT, check=True, timeout=60)
    lines = (tmp_path / "llm_responses.jsonl").read_text().splitlines()
    assert 1 <= len(lines) < 10
    assert {json.loads(line)["model"] for line in lines} == {"m"}
    assert not (tmp_path / "last_messages.jsonl").read_text()
    assert len((tmp_path / "llm_requests.jsonl").read_text().splitlines()) == 1


async def test_side_questions_and_compactions_are_recorded_with_their_purpose(tmp_path: Path) -> None:
    said = [Reply((Text(f"answer {number} " * 200),)) for number in range(3)]
    script = Script((*said, Reply((Text("beside"),)), Reply((Text("summary"),))))
    settings = EngineSettings(diagnostics=Diagnostics(tmp_path / "logs"))
    async with engine_harness(tmp_path, provider=ScriptedProvider({"main": script}), settings=settings) as home:
        conversation = await home.conversation()
        for number in range(3):
            await conversation.say(f"question {number}")
            await conversation.wait_idle()
        await conversation.side.ask("And?")
        await conversation.context.compact()
        await conversation.wait_idle()
    lines = (tmp_path / "logs/llm_responses.jsonl").read_text().splitlines()
    purposes = [json.loads(line)["purpose"] for line in lines]
    assert purposes == ["reply", "reply", "reply", "aside", "compaction"]
    last = (tmp_path / "logs/last_messages.jsonl").read_text()
    assert "question 2" in last  # of the last turn, and not of the summary


async def test_a_failed_side_question_is_recorded(tmp_path: Path) -> None:
    fails = Reply((Fail("no such thing", "invalid_request", retryable=False),))
    provider = ScriptedProvider({"main": Script((Reply((Text("hi"),)),), aside=fails)})
    settings = EngineSettings(diagnostics=Diagnostics(tmp_path / "logs"))
    async with engine_harness(tmp_path, provider=provider, settings=settings) as home:
        conversation = await home.conversation()
        await conversation.say("x")
        await conversation.wait_idle()
        with pytest.raises(ProviderError):
            await conversation.side.ask("And?")
    (path,) = (tmp_path / "logs").glob("llm_api_error_*.json")
    assert json.loads(path.read_text())["purpose"] == "aside"
