"""Models, profiles and the supervisor in lines: numbers, words, and what is left again."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import Phoenix, phoenix_in
from tests.support.journeys import Answer, Claude, picks, rows, says
from tests.support.loopback import Seen, Talk, serve
from tests.support.program import in_lines

NAMES = ("glm-4.7", "evil\x1b[31mred", *(f"model-{number}" for number in range(30)))


async def lists(talk: Talk) -> None:
    await talk.plain(200, json.dumps({"data": [{"id": name, "context_length": 131_072} for name in NAMES]}).encode())


def kept_in(home: Path) -> object:
    return json.loads((home / "preferred-models.json").read_text())


async def test_models_are_numbered_found_by_words_marked_and_left_again(tmp_path: Path) -> None:
    async with serve(*[lists] * 6) as server:
        phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="demo/guide")
        (phoenix.home / "config.toml").write_text(f'[providers.work]\nbase_url = "{server.url}/v1"\n')
        async with in_lines(phoenix, columns=160) as running:
            await running.press("/model\r", "The first 20 of 33 models; /model WORD finds others.")
            await running.shows("providers without a key: /model PROVIDER names its variable.")
            await running.shows("1. demo/guide (now), on this machine, window none, free, no images, rules, no model")
            running.type("\r")
            running.type("/model glm reason\r")
            await running.shows(
                "1. work/glm-4.7, on this machine, window 131k, $0.276/1.103 per million tokens, no images, reasoning"
            )
            await running.press("1\r", "Model work/glm-4.7.")
            await running.press("/model work/glm-4.7 *\r", "work/glm-4.7 is a favourite now.")
            await running.press("/model -\r", "Model demo/guide.")
            await running.press("/model gemini\r", "gemini: no key. set GEMINI_API_KEY")
            running.type("/model zzz\r")
            await running.shows("No model has “zzz”. /model lists all; /model PROVIDER/MODEL uses one as typed.")
            await running.press("/model evil\r", "1. work/evilred, on this machine")
    assert kept_in(phoenix.home) == {"favourites": ["work/glm-4.7"], "recent": ["demo/guide", "work/glm-4.7"]}


async def test_a_profile_is_chosen_by_number_and_left_by_name(claude: Claude) -> None:
    phoenix, _ = await claude(says("Here."), says("There."))
    (phoenix.home / "profiles").mkdir(parents=True)
    (phoenix.home / "profiles" / "mine.md").write_text("---\ncolour: red\n---\n")
    async with in_lines(phoenix, columns=400) as running:
        await running.press(
            "/profile\r", "mine.md:2: 'colour: red' is not a valid key", "1. general (now), Any task", "2. explore,"
        )
        await running.press("2\r", "This conversation starts as explore: mode plan.")
        await running.press("where is it\r", "Assistant: Here.")
        await running.press("/profile general\r", "New conversations start as general. This one is unchanged.")
        await running.press("/profile nobody\r", "There is no profile 'nobody'")
        await running.press("/new\r", "New conversation.")
        await running.press("go on\r", "Assistant: There.")
    found = rows(phoenix, "SELECT profile, permission_mode FROM conversations ORDER BY rowid")
    assert found == [("explore", "plan"), ("", "ask")]


DECISION = {
    "strategy": "sequential",
    "agents": [
        {"agentName": "explore", "taskDescription": "find the parser", "priority": "high"},
        {"agentName": "review", "taskDescription": "review it"},
    ],
    "reasoning": "the second needs the first",
    "confidence": 0.75,
}


def answers(seen: Seen) -> Answer:
    supervisor = "You are the supervisor" in json.dumps(seen.json["system"])
    return says(json.dumps(DECISION) if supervisor else "Alone.")


async def test_a_decision_is_read_out_and_overruled(claude: Claude) -> None:
    plain, _ = await claude(picks(answers))
    quiet = {"PHOENIX_ROUTE_WAIT": "600", "PHOENIX_TURN_SUMMARIES": "false"}
    phoenix = Phoenix(plain.home, plain.cwd, {**plain.extra, **quiet})
    async with in_lines(phoenix, "--permission-mode", "auto", columns=400) as running:
        await running.press("/route on\r", "A supervisor now chooses who answers: the main model or sub-agents.")
        running.type("look at the parser\r")
        await running.shows(
            "The supervisor proposes 2 agents in sequence, 75% sure.",
            "Agent 1, explore, high priority: find the parser",
            "Agent 2, review: review it",
            "Because: the second needs the first",
            "/route start starts them now, /route alone answers without them.",
        )
        await running.press("/route alone\r", "Assistant: Alone.", "Ready, after")
        await running.press("/route alone\r", "No supervisor's decision is open.")
        running.type("/cost\r1\r")
        await running.shows("Last run:", "answered by: the main model alone", "you let the main model answer alone")
        await running.press("/route off\r", "Routing is off; the main model answers.")
