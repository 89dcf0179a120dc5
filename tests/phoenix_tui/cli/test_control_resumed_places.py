"""`--resume-session-at`, `--resume-drops-turn` and `--fallback-model`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.machine.states import RETRIES
from tests.phoenix_tui.cli.test_control_servers import bodies
from tests.support.cli import Phoenix, with_claude
from tests.support.control_host import FLAGS, Frame, hosted
from tests.support.loopback import Answer, Loopback, Talk, serve
from tests.support.loopback_agents import calls, says
from tests.support.loopback_anthropic import refuses

RUNS = calls("bash", {"command": "echo hello"})
ALLOWED = ("--allowedTools", "Bash")


async def spoken(phoenix: Phoenix) -> list[Frame]:
    """Three turns; the frames of the replies."""
    async with hosted(phoenix, *ALLOWED) as host:
        for text in ("first", "second", "third"):
            await host.turn(text)
    return [one for one in host.messages() if one["type"] == "assistant"]


def words(server: Loopback) -> str:
    return json.dumps(bodies(server)[-1]["messages"])


async def test_a_resumed_conversation_goes_on_behind_a_message(tmp_path: Path) -> None:
    async with serve(says("One."), says("Two."), says("Three."), says("Other.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        replies = await spoken(phoenix)
        session, second = replies[0]["session_id"], replies[1]["uuid"]
        async with hosted(phoenix, f"--resume={session}", f"--resume-session-at={second}") as host:
            result = (await host.turn("instead"))[-1]
        sent = words(server)
        async with hosted(phoenix, f"--resume={session}") as host:
            await host.turn("as before")
        whole = words(server)
    assert [word in sent for word in ("Two.", "third", "Three.", "instead")] == [True, False, False, True]
    assert result["session_id"] != session
    assert [word in whole for word in ("Two.", "third", "Three.", "instead")] == [True, True, True, False]


async def test_the_results_of_a_replys_calls_are_kept_with_it(tmp_path: Path) -> None:
    async with serve(RUNS, says("Ran."), says("Two."), says("Three."), says("Other.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        replies = await spoken(phoenix)
        call = replies[0]
        async with hosted(phoenix, "--resume", call["session_id"], "--resume-session-at", call["uuid"]) as host:
            await host.turn("instead")
        sent = words(server)
    assert [word in sent for word in ("tool_result", "hello", "Ran.", "instead")] == [True, True, False, True]


async def test_only_one_turn_is_dropped_where_the_host_says_so(tmp_path: Path) -> None:
    async with serve(says("One."), says("Two."), says("Three."), says("Other.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        first, second, _ = await spoken(phoenix)
        flags = ("--resume", first["session_id"], "--resume-drops-turn", "a1")
        refused = await phoenix.run(*FLAGS, *flags, "--resume-session-at", first["uuid"], stdin=b"")
        async with hosted(phoenix, *flags, "--resume-session-at", second["uuid"]) as host:
            result = (await host.turn("instead"))[-1]
    assert (refused.code, "More than the turn" in refused.err) == (2, True)
    assert result["result"] == "Other."


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--resume-session-at", "x"), "--resume-session-at needs --resume with the conversation."),
        (("--resume-drops-turn", "x"), "--resume-drops-turn needs --resume-session-at."),
    ],
)
async def test_places_need_a_conversation(tmp_path: Path, flags: tuple[str, ...], sentence: str) -> None:
    ran = await with_claude(tmp_path, "http://127.0.0.1:9").run(*FLAGS, *flags, stdin=b"")
    assert (ran.code, sentence in ran.err) == (2, True)


async def test_an_unknown_message_is_refused_in_clean_words(tmp_path: Path) -> None:
    async with serve(says("One.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix) as host:
            session = (await host.turn("first"))[-1]["session_id"]
        ran = await phoenix.run(*FLAGS, "--resume", session, "--resume-session-at", "not\x1b[31m there", stdin=b"")
    assert ran.code == 2
    assert "There is no message not" in ran.err
    assert "\x1b" not in ran.err


def overloaded_unless(model: str, answer: Answer) -> Answer:
    """Error 529 for all models but one."""

    async def reply(talk: Talk) -> None:
        is_right = json.loads(talk.seen.body)["model"] == model
        await (answer if is_right else refuses(529, "overloaded_error", "Overloaded"))(talk)

    return reply


@pytest.mark.slow
async def test_another_model_answers_a_turn_whose_own_is_overloaded(tmp_path: Path) -> None:
    async with serve(overloaded_unless("claude-haiku-5-5", says("From haiku."))) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with hosted(phoenix, "--fallback-model", "haiku") as host:
            frames = await host.turn("Hi")
            await host.wait(lambda one: one.get("state") == "idle")  # its own model is back then
            usage = await host.ask("get_context_usage")
        asked = [body["model"] for body in bodies(server)]
    assert (asked, frames[-1]["result"]) == (
        [*["claude-sonnet-5-5"] * (1 + RETRIES), "claude-haiku-5-5"],
        "From haiku.",
    )
    assert (frames[-1]["subtype"], frames[-1]["is_error"]) == ("success", False)
    assert usage["response"]["model"] == "claude-sonnet-5-5"
    assert b"answers this turn" in bytes(host.err)


@pytest.mark.slow
async def test_both_models_may_fail(tmp_path: Path) -> None:
    async with (
        serve(refuses(529, "overloaded_error", "Overloaded")) as server,
        hosted(with_claude(tmp_path, server.url), "--fallback-model", "haiku") as host,
    ):
        result = (await host.turn("Hi"))[-1]
    assert (result["is_error"], result["terminal_reason"]) == (True, "api_error")
    assert len(bodies(server)) == 2 * (1 + RETRIES)
