"""The embedded model itself, with the weights that `PHOENIX_GGUF` names; a minute on two cores."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from engine.ports import TextDelta
from engine.providers.local.provider import LocalProvider
from engine.providers.local.server import RunnerHost, measure
from tests.support.plain_runner import PlainRunner
from tests.support.tool_bench import real_tools, take_turn

WEIGHTS = Path(os.environ.get("PHOENIX_GGUF", "/nowhere"))


class Installed:
    """Fixed set of models."""

    def __init__(self, found: Mapping[str, Path]) -> None:
        self.found = found

    def usable(self) -> Mapping[str, Path]:
        return self.found


def _missing() -> str:
    if not WEIGHTS.is_file():
        return "no weights: set PHOENIX_GGUF"
    if find_spec("xllamacpp") is None:
        return "the extra [local] is not installed"
    return measure().shortage(WEIGHTS.stat().st_size)


pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(_missing()), reason=_missing() or "-")]


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[LocalProvider]:
    found = LocalProvider(Installed({"real": WEIGHTS}), RunnerHost(PlainRunner(), tmp_path))
    yield found
    await found.close()


async def test_the_real_model_talks_and_uses_a_tool(provider: LocalProvider, tmp_path: Path) -> None:
    folder = tmp_path / "pond"
    folder.mkdir()
    (folder / "notes.txt").write_text("the ducks are called Anton and Berta\n")
    tools = real_tools(tmp_path / "spill")
    talk = await take_turn(provider, "real", "hello!", folder, tools)
    assert talk.calls == []
    assert talk.answer.strip()
    assert sum(isinstance(item, TextDelta) for item in talk.items) > 1
    act = await take_turn(provider, "real", "read notes.txt and tell me the names of the ducks", folder, tools)
    assert act.calls[0] == "read_file"
    assert act.replies[-1].usage.cache_read_tokens > 0
