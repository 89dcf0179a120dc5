"""AGENTS.md is read once for a run, so that every request of it begins alike (SPEC UNI-30)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.executor.engine_settings import EngineSettings
from engine.ports.instructions import PromptFile, PromptFileKind
from tests.support.engine import engine_harness
from tests.support.scripted_provider import Reply, ScriptedCall, Text

CALL = Reply((ScriptedCall("bash", '{"command": "ls"}'),))
DONE = Reply((Text("Done."),))


@dataclass
class Rules:
    """Another text each time it is read."""

    read: list[Path] = field(default_factory=list[Path])

    def of(self, folder: Path, window: int = 0) -> tuple[PromptFile, ...]:
        self.read.append(folder)
        text = f"Version {len(self.read)} of the rules."
        return (PromptFile(PromptFileKind.INSTRUCTIONS, folder / "AGENTS.md", text),)

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        del folder, path
        return ()


async def test_every_request_of_a_run_says_what_its_first_one_said(tmp_path: Path) -> None:
    rules = Rules()
    settings = EngineSettings(instructions=rules, auto_title=False)
    async with engine_harness(tmp_path, CALL, CALL, DONE, DONE, settings=settings) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
        await conversation.wait_idle()
        said = [request.system[0] for request in harness.provider.requests]
        assert len(said) == 3
        assert len(set(said)) == 1
        assert "Version 1 of the rules." in said[0]
        assert len(rules.read) == 1
        await conversation.say("second")
        await conversation.wait_idle()
        assert "Version 2 of the rules." in harness.provider.requests[-1].system[0]
