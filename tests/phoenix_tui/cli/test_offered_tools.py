"""The first frame of a stream names the tools that the model is offered: a search only where something can search."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import phoenix_in, with_claude
from tests.support.control_host import hosted
from tests.support.journeys import says
from tests.support.loopback import serve

WEB = '[web]\nsearch = "searxng"\nurl = "http://localhost:8888"\n'


@pytest.mark.parametrize(("config", "is_offered"), [("", False), (WEB, True)])
async def test_a_model_whose_provider_does_not_search_needs_a_service(
    tmp_path: Path, config: str, is_offered: bool
) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.home / "config.toml").write_text(config)
    ran = await phoenix.run("-p", "--output-format", "stream-json", "Hi")
    first = ran.lines[0]
    assert ("web_search" in first["tools"] or "WebSearch" in first["tools"]) is is_offered
    async with hosted(phoenix) as host:
        (first, *_) = await host.turn("Hi")
    assert ("WebSearch" in first["tools"], "Bash" in first["tools"]) == (is_offered, True)


async def test_a_model_that_its_provider_searches_for_has_it(tmp_path: Path) -> None:
    async with serve(says("Hi.")) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "--output-format", "stream-json", "Hi")
    assert "web_search" in ran.lines[0]["tools"]
