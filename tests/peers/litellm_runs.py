"""`make litellm`: `phoenix -p` through LiteLLM's proxy, over both of its APIs, to an upstream of either kind.

Installs the proxy in a folder that is removed afterwards (`--python` names an environment that has it), starts it on
loopback before a scripted upstream, plays every scenario over every route, and prints a table of what came of it. The
last argument names scenarios; 1 where one of them went otherwise than it must.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.providers import catalogue
from tests.peers.litellm_proxy import KEY, MODELS, installed, proxied
from tests.peers.rows import Row, heading, told
from tests.peers.upstream import LONG, Upstream
from tests.support.cli import Phoenix, Ran, ended, phoenix_in
from tests.support.loopback import Loopback, serve
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.waiting import poll

ROUTES: Final = [(api, upstream) for api in ("openai", "anthropic") for upstream in ("openai", "anthropic")]
"""Pairs of the API that Phoenix speaks and that of the upstream."""
BY_RESPONSES: Final = [("anthropic", "responses")]
"""Request of the proxy to OpenAI for a client of Claude's API, by default."""
FLAGS: Final = ("-p", "--output-format", "stream-json", "--permission-mode", "auto")


@dataclass(frozen=True, slots=True)
class Seen:
    """Results of a run."""

    ran: Ran
    upstream: Upstream
    route: tuple[str, str]
    cost: float | None
    """Dollars of what the upstream counted."""

    @property
    def result(self) -> dict[str, Any]:
        """The last line."""
        return self.ran.lines[-1] if self.ran.out.strip() else {}

    @property
    def retries(self) -> list[dict[str, Any]]:
        """The lines that tell of another attempt."""
        return [line for line in self.ran.lines if line.get("subtype") == "api_retry"]

    @property
    def words(self) -> str:
        """The answer, or what was said in its place."""
        return str(self.result.get("result") or self.result.get("error") or self.ran.err)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A prompt, how its run has to end, and what else has to hold."""

    name: str
    code: int = 0
    words: str = ""
    """Text in the answer or in the error."""
    retries: int = 0
    holds: Callable[[Seen], bool] = lambda _: True
    counted: bool = True
    """True when all counts reach Phoenix: an interrupted call reports a part."""


def _has_both_outputs(seen: Seen) -> bool:
    results = [line for line in seen.ran.lines if line.get("type") == "user"]
    told = json.dumps(results)
    return len(seen.upstream.requests) == 2 and "one\\n" in told.replace("\\\\n", "\\n") and "two" in told


def _has_thought(seen: Seen) -> bool:
    """Shown, and sent back where there is a signature, whatever the API in between."""
    shown = '"thinking": "Let me see."' in json.dumps(seen.ran.lines)
    return shown and (seen.words == "Signed.") is (seen.route[1] == "anthropic")


SCENARIOS: Final = [
    Scenario("plain", words="Hello there."),
    Scenario("tools", words="Both ran.", holds=_has_both_outputs),
    Scenario("thinks", words="igned.", holds=_has_thought),
    Scenario("midway", words="the rest.", retries=1, counted=False),
    Scenario("cut", words="the rest.", retries=1, counted=False),
    Scenario("limited", words="Hello", retries=1, holds=lambda seen: seen.retries[0]["delay_ms"] >= 1000),
    Scenario("broken", words="Hello", retries=1),
    Scenario("toolong", 1, "too long for the model"),
    Scenario("locked", 41, "Incorrect API key provided"),
    Scenario("cooldown", words="Hello", retries=1, holds=lambda seen: seen.retries[0]["delay_ms"] >= 4000),
    Scenario("wrong key", 41, "API key rejected"),
    Scenario("rounds20", words="All done.", holds=lambda seen: len(seen.upstream.requests) == 21),
    Scenario("image", words="A dot."),
    Scenario("hangs", 130, holds=lambda seen: seen.upstream.hung_up == 1, counted=False),
    Scenario("long", words=LONG.strip()),
]


KNOWN: Final = {("hangs", "anthropic", "openai"): "LiteLLM keeps the upstream's connection, whoever hangs up"}
"""Known limits of the proxy for every client; tried with another one."""


def phoenix_to(folder: Path, gateway: str, key: str) -> Phoenix:
    """An installation that asks the gateway, whichever API it speaks."""
    given = {"OPENAI_BASE_URL": f"{gateway}/v1", "OPENAI_API_KEY": key, "PHOENIX_MODEL": ""}
    return phoenix_in(folder, ANTHROPIC_BASE_URL=gateway, ANTHROPIC_API_KEY=key, **given)


async def play(scenario: Scenario, route: tuple[str, str], gateway: str, server: Loopback, upstream: Upstream) -> Seen:
    """One run."""
    api, behind = route
    upstream.forget()
    asked = len(server.requests)
    with tempfile.TemporaryDirectory() as name:
        phoenix = phoenix_to(Path(name), gateway, "sk-wrong-0123456789" if scenario.name == "wrong key" else KEY)
        (phoenix.cwd / "dot.png").write_bytes(TINY_PNG)
        flags = [*FLAGS, "-m", f"{api}/{MODELS[behind]}", *(["-i", "dot.png"] if scenario.name == "image" else [])]
        process = await phoenix.start(*flags, f"[{scenario.name}] go")
        if scenario.name == "hangs":
            await poll(lambda: len(server.requests) > asked)
            process.send_signal(signal.SIGINT)
        ran = await ended(process)
        if scenario.name == "hangs":
            await poll(lambda: upstream.hung_up > 0, seconds=5)
    cost = catalogue.price(api, MODELS[behind], upstream.told)
    return Seen(ran, upstream, route, cost)


def faults(scenario: Scenario, seen: Seen) -> list[str]:
    """Deviations of the run from the scenario."""
    found = list(seen.upstream.faults)
    if seen.ran.code != scenario.code:
        found.append(f"exit code {seen.ran.code}")
    if scenario.words not in seen.words:
        found.append("other words")
    if len(seen.retries) != scenario.retries:
        found.append(f"{len(seen.retries)} retries")
    if not scenario.holds(seen):
        found.append("does not hold")
    if scenario.counted and seen.result:
        found += _miscounted(seen)
    return found


def _miscounted(seen: Seen) -> list[str]:
    told, shown = seen.upstream.told, seen.result["usage"]
    wanted = {
        "input_tokens": told.input_tokens,
        "output_tokens": told.output_tokens,
        "cache_creation_input_tokens": told.cache_creation_tokens,
        "cache_read_input_tokens": told.cache_read_tokens,
    }
    found = [f"{name} {shown[name]} of {count}" for name, count in wanted.items() if shown[name] != count]
    cost = seen.result["total_cost_usd"]
    if cost is None or abs(cost - (seen.cost or 0)) > 1e-9:
        found.append(f"cost {cost} of {seen.cost}")
    return found


async def drive(folder: Path, python: Path, names: list[str]) -> int:
    """Play what is asked for, a row of the table for each run; 1 where one has faults."""
    wanted = [one for one in SCENARIOS if not names or one.name in names]
    failed = 0
    heading("Phoenix speaks", "upstream", "scenario", "Phoenix showed")
    upstream = Upstream()
    async with serve(upstream) as server:
        for responses in (False, True):
            async with proxied(folder, python, server.url, responses=responses) as gateway:
                for route in BY_RESPONSES if responses else ROUTES:
                    for scenario in wanted:
                        seen = await play(scenario, route, gateway, server, upstream)
                        failed += told(_row(scenario, seen), *route)
    return min(failed, 1)


def _row(scenario: Scenario, seen: Seen) -> Row:
    showed = f"exit {seen.ran.code}, {len(seen.upstream.requests)} requests: {seen.words}"
    return Row(scenario.name, showed, "; ".join(faults(scenario, seen)), KNOWN.get((scenario.name, *seen.route), ""))


def main() -> int:
    """Every scenario, unless some are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for the proxy's configuration and log")
    parser.add_argument("scenarios", nargs="*")
    wanted = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as name:
        folder = wanted.keep or Path(name)
        python = wanted.python or installed(Path(name))
        return asyncio.run(drive(folder, python, wanted.scenarios))


if __name__ == "__main__":
    sys.exit(main())
