"""The list of models in lines: numbers, words, favourites, and the way back."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import phoenix_in
from tests.support.loopback import Talk, serve
from tests.support.program import program

NAMES = ("glm-4.7", "evil\x1b[31mred", *(f"model-{number}" for number in range(30)))


async def lists(talk: Talk) -> None:
    await talk.plain(200, json.dumps({"data": [{"id": name, "context_length": 131_072} for name in NAMES]}).encode())


def kept_in(home: Path) -> object:
    return json.loads((home / "preferred-models.json").read_text())


async def test_models_are_numbered_found_by_words_marked_and_left_again(tmp_path: Path) -> None:
    async with serve(*[lists] * 6) as server:
        phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="demo/guide")
        (phoenix.home / "config.toml").write_text(f'[providers.work]\nbase_url = "{server.url}/v1"\n')
        async with program(phoenix, "--screen-reader", rows=100, columns=160) as running:
            await running.shows("You:")
            running.type("/model\r")
            await running.shows("The first 20 of 33 models; /model WORD finds others.")
            await running.shows("providers without a key: /model PROVIDER names its variable.")
            await running.shows("1. demo/guide (now), on this machine, window none, free, no images, rules, no model")
            running.type("\r")
            running.type("/model glm reason\r")
            await running.shows(
                "1. work/glm-4.7, on this machine, window 131k, $0.276/1.103 per million tokens, no images, reasoning"
            )
            running.type("1\r")
            await running.shows("Model work/glm-4.7.")
            running.type("/model work/glm-4.7 *\r")
            await running.shows("work/glm-4.7 is a favourite now.")
            running.type("/model -\r")
            await running.shows("Model demo/guide.")
            running.type("/model gemini\r")
            await running.shows("gemini: no key. set GEMINI_API_KEY")
            running.type("/model zzz\r")
            await running.shows("No model has “zzz”. /model lists all; /model PROVIDER/MODEL uses one as typed.")
            running.type("/model evil\r")
            await running.shows("1. work/evilred, on this machine")
    assert kept_in(phoenix.home) == {"favourites": ["work/glm-4.7"], "recent": ["demo/guide", "work/glm-4.7"]}
