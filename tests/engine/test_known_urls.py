"""A URL that neither the user nor a page named asks, whatever the mode: it could carry data out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.executor.engine_settings import EngineSettings
from engine.machine.states import Idle
from engine.permissions.rules import KeptRule
from engine.records import PermissionMode
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.contract import JsonObject, ToolClass, ToolContext, ToolOutput, ToolRequest

DONE = Reply((Text("Done."),))
PAGE = "https://docs.example.com/page"


class Web(StubTool):
    """A web tool that answers with a link, without a network."""

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        url = str(args["url"])
        return ToolRequest(url, host=url.split("/")[2], url=url)

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        self.calls.append(args)
        return ToolOutput("See https://next.example.com/linked?x=1 for more.")


def fetch(url: str, name: str = "web_fetch") -> Reply:
    return Reply((ScriptedCall(name, json.dumps({"url": url})),))


async def asked(harness: EngineHarness, web: Web, said: str) -> tuple[list[str], str]:
    """URLs that were fetched until a question or the end, and the reason of the question."""
    conversation = await harness.conversation(PermissionMode.AUTO)
    await conversation.say(said)
    await until(lambda: conversation.question or isinstance(conversation.state, Idle))
    question = conversation.question
    return [str(call["url"]) for call in web.calls], question.reason if question is not None else ""


SETTINGS = EngineSettings(auto_title=False)


@pytest.mark.parametrize("said", [f"Read {PAGE} please", "Read docs.example.com/page.", f"({PAGE}#part)"])
async def test_a_url_of_the_user_is_fetched_without_a_question(tmp_path: Path, said: str) -> None:
    web = Web("web_fetch", ToolClass.NET)
    async with engine_harness(tmp_path, fetch(PAGE), DONE, tools=(web,), settings=SETTINGS) as harness:
        assert await asked(harness, web, said) == ([PAGE], "")


async def test_a_link_of_an_earlier_page_is_fetched_and_one_with_more_in_it_asks(tmp_path: Path) -> None:
    web = Web("web_fetch", ToolClass.NET)
    linked = "https://next.example.com/linked?x=1"
    replies = (fetch(PAGE), fetch(linked), fetch(f"{linked}&secret=key"), DONE)
    async with engine_harness(tmp_path, *replies, tools=(web,), settings=SETTINGS) as harness:
        fetched, reason = await asked(harness, web, f"Read {PAGE}")
    assert fetched == [PAGE, linked]
    assert "could carry data out" in reason


async def test_a_url_in_the_result_of_another_tool_is_the_models_own(tmp_path: Path) -> None:
    web, echo = Web("web_fetch", ToolClass.NET), Web("echo", ToolClass.READ)
    replies = (fetch(PAGE, "echo"), fetch("https://next.example.com/linked?x=1"), DONE)
    async with engine_harness(tmp_path, *replies, tools=(web, echo), settings=SETTINGS) as harness:
        fetched, reason = await asked(harness, web, "go")
    assert fetched == []
    assert "could carry data out" in reason


@pytest.mark.parametrize(("pattern", "allowed"), [("domain:docs.example.com", True), ("*", False)])
async def test_a_rule_that_names_the_host_allows_a_new_url_and_one_for_everything_does_not(
    tmp_path: Path, pattern: str, allowed: bool
) -> None:
    web = Web("web_fetch", ToolClass.NET)
    async with engine_harness(tmp_path, fetch(PAGE), DONE, tools=(web,), settings=SETTINGS) as harness:
        harness.rules.add(KeptRule(f"web_fetch({pattern})"))
        fetched, _ = await asked(harness, web, "go")
    assert fetched == ([PAGE] if allowed else [])
