"""`make llama ARGS=MODEL.gguf`: `phoenix -p` with llama.cpp's own server, over both of its APIs.

The server is that of the extra [local], in a process of its own on loopback, with the weights that are named. The first
prompt takes it a minute or two; rows go on in one folder, so that it need not be read again. Prints a table of what
came of it; 1 where a row went otherwise than it must.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.peers.llama_server import KEY, WINDOW, Server
from tests.peers.rows import Row, heading, judged, told
from tests.support.cli import Phoenix, Ran, phoenix_in
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.waiting import poll

ROUNDS: Final = 50
LONG_RUN: Final = 1_800.0
"""Seconds one row may take on a busy machine."""
PROFILE: Final = "---\ndescription: runs commands\ntools: bash\n---\nYou run commands.\n"
"""One tool, and no word that is another in the next conversation: the server keeps what it has read of it."""
FLAGS: Final = ("-p", "--output-format", "stream-json", "--permission-mode", "auto")
LONGEST_LOOK: Final = 180.0
"""Seconds until the server looks at a connection, on a busy machine; 0.5 to 45 were seen."""
FORCED: Final = """tool_protocol = "json"
context_window = 12288
[providers.forced.extra_body.response_format]
type = "json_schema"
[providers.forced.extra_body.response_format.json_schema.schema]
type = "object"
required = ["tool", "arguments"]
[providers.forced.extra_body.response_format.json_schema.schema.properties]
tool = {const = "bash"}
arguments = {type = "object", required = ["command"], properties = {command = {const = "date +%N"}}}
"""
"""A grammar that leaves the model one answer: a call whose result is another each time."""
THINKS: Final = """tool_protocol = "json"
context_window = 12288
[providers.thinks.extra_body]
response_format = {type = "text"}
grammar = 'root ::= "<think>I look at the pond.</think>The pond is calm."'
"""
"""A grammar that leaves it one text."""
ONE_TURN: Final = ("--max-turns", "1")
ANSWERED: Final = {0, 53}
"""Exit codes of a run that got its answer: this model may prefer a call to a word."""
SMALL: Final = ("--profile", "small", "--system-prompt", "You are an agent with a shell.")


@dataclass(slots=True)
class Bench:
    """The server and the installation that asks it."""

    server: Server
    phoenix: Phoenix
    reference: str = "llamacpp/local"

    async def run(self, *arguments: str, said: str = "", stop_when: Callable[[], object] | None = None) -> Ran:
        """One run to its end, stopped by SIGINT once a condition holds; `said` is its standard input."""
        pipe = asyncio.subprocess.PIPE if said else asyncio.subprocess.DEVNULL
        process = await self.phoenix.start(*FLAGS, *SMALL, "-m", self.reference, *arguments, stdin=pipe)
        try:
            async with asyncio.timeout(LONG_RUN):
                if stop_when is not None:
                    await poll(stop_when, seconds=LONG_RUN)
                    process.send_signal(signal.SIGINT)
                out, err = await process.communicate(said.encode() or None)
        finally:
            if process.returncode is None:
                process.kill()
        return Ran(process.returncode or 0, out.decode(), err.decode())

    def is_busy(self) -> bool:
        """True while the server processes a request."""
        slots = self.server.ask("/slots")
        return bool(slots) and bool(slots[0]["is_processing"])


def _results(ran: Ran) -> int:
    return sum(line["type"] == "user" for line in ran.lines)


def _retries(ran: Ran) -> int:
    return sum(line.get("subtype") == "api_retry" for line in ran.lines)


def _words(ran: Ran) -> str:
    last = ran.lines[-1] if ran.out.strip() else {}
    return str(last.get("error") or last.get("result") or ran.err)


async def loading(bench: Bench) -> Row:
    """Asked as soon as the port is open, while the model is being loaded."""
    await bench.server.listening()
    ran = await bench.run(*ONE_TURN, "Say: ready")
    return judged(
        "asked while it loads", f"exit {ran.code}, {_retries(ran)} retries: {_words(ran)}", ran.code in ANSWERED
    )


async def plain(bench: Bench) -> Row:
    """A short answer, counted on both sides."""
    before = bench.server.counted()
    ran = await bench.run(*ONE_TURN, "Reply with the single word: ready")
    after = bench.server.counted()
    usage = ran.lines[-1]["usage"]
    shown = (usage["input_tokens"], usage["output_tokens"])
    server = (after[0] - before[0], after[1] - before[1])
    return judged(
        "text; tokens", f"exit {ran.code}, tokens {shown}, server {server}", ran.code in ANSWERED and shown == server
    )


async def window(bench: Bench) -> Row:
    """The window it was started with, not the one its model was trained with."""
    listed = await bench.phoenix.run("models", "--json")
    sizes = {model["model"]: model["context_window"] for model in json.loads(listed.out)}
    name = next((one for one in sizes if one.startswith(bench.reference.partition("/")[0] + "/")), "")
    return judged("window from /v1/models", f"{name}: {sizes.get(name)}", sizes.get(name) == WINDOW)


async def call(bench: Bench) -> Row:
    """One tool call; this model writes it as text."""
    ran = await bench.run("--max-turns", "2", "Run the command `echo pond-7` with the bash tool.")
    has_run = any("pond-7" in json.dumps(line) for line in ran.lines if line["type"] == "user")
    return judged("a tool call in the text", f"exit {ran.code}, {_results(ran)} results", has_run)


async def rounds(bench: Bench) -> Row:
    """Tool rounds over kept connections: no request fails. The server's own grammar makes every answer a call."""
    ran = await Bench(bench.server, bench.phoenix, "forced/local").run("--max-turns", str(ROUNDS + 1), "Go on.")
    done, failed = _results(ran), _retries(ran)
    showed = f"exit {ran.code}, {done} rounds, {failed} failed requests"
    return judged(f"{ROUNDS} tool rounds", showed, ran.code == 53 and done >= ROUNDS and not failed)


async def thinks(bench: Bench) -> Row:
    """Check that reasoning in tags is reported as reasoning."""
    ran = await Bench(bench.server, bench.phoenix, "thinks/local").run("How is the pond?")
    blocks = [part for line in ran.lines if line["type"] == "assistant" for part in line["message"]["content"]]
    kinds = [part["type"] for part in blocks]
    showed = f"exit {ran.code}, blocks {kinds}: {_words(ran)}"
    return judged("<think> in the text", showed, kinds == ["thinking", "text"] and _words(ran) == "The pond is calm.")


async def cancel(bench: Bench) -> Row:
    """SIGINT while the prompt is being read: the server lets go of it, once it has looked at its connection."""
    before = bench.server.cancelled()
    ran = await bench.run("word " * 5_000, stop_when=bench.is_busy)
    is_let_go = await poll(lambda: bench.server.cancelled() > before, seconds=LONGEST_LOOK)
    showed = f"exit {ran.code}, the server cancelled its task: {is_let_go}"
    return judged("stopped while it reads", showed, ran.code == 130 and is_let_go)


async def overflow(bench: Bench) -> Row:
    """More than the window."""
    ran = await bench.run(said="word " * 3 * WINDOW)
    return judged("more than the window", f"exit {ran.code}: {_words(ran)}", "too long for the model" in _words(ran))


async def image(bench: Bench) -> Row:
    """An image for a model without eyes."""
    (bench.phoenix.cwd / "dot.png").write_bytes(TINY_PNG)
    ran = await bench.run("-i", "dot.png", "What is it?")
    return judged("an image", f"exit {ran.code}: {_words(ran)}", ran.code == 1 and "image" in _words(ran))


async def wrong_key(bench: Bench) -> Row:
    """A key that it does not take."""
    given = dict(bench.phoenix.extra) | {"LLAMA_KEY": "sk-wrong-0123456789", "ANTHROPIC_API_KEY": "sk-wrong-0123456789"}
    wrong = Bench(bench.server, Phoenix(bench.phoenix.home, bench.phoenix.cwd, given), bench.reference)
    ran = await wrong.run("hi")
    return judged("a wrong key", f"exit {ran.code}: {_words(ran)}", ran.code == 41)


async def killed(bench: Bench) -> Row:
    """The server dies in the middle of its work and comes back."""
    running = asyncio.create_task(bench.run(*ONE_TURN, "Count to 500."))
    await poll(bench.is_busy)
    await bench.server.end()
    await bench.server.start()
    ran = await running
    showed = f"exit {ran.code}, {_retries(ran)} retries: {_words(ran)}"
    return judged("killed and started anew", showed, ran.code in ANSWERED)


Check = Callable[[Bench], Awaitable[Row]]
OPENAI: Final[tuple[Check, ...]] = (
    loading, plain, window, call, rounds, thinks, cancel, overflow, image, wrong_key, killed,
)  # fmt: skip
ANTHROPIC: Final[tuple[Check, ...]] = (plain, window, call, cancel, overflow, wrong_key)
EMBEDDED: Final[tuple[Check, ...]] = (call, overflow)
"""Run with the server that Phoenix starts itself."""


async def drive(folder: Path, model: Path, threads: int, names: list[str]) -> int:
    """Every row, or those that are named; 1 where one went otherwise than it must."""
    server = Server(model, threads, folder / "server.log")
    await server.start()
    given = {"PHOENIX_MODEL": "", "LLAMA_KEY": KEY, "PHOENIX_GGUF": str(model)}
    phoenix = phoenix_in(folder, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=server.url, **given)
    table = f'base_url = "{server.url}/v1"\napi_key_env = "LLAMA_KEY"\nmax_tokens = 200\n'
    tables = (
        f"[providers.llamacpp]\n{table}extra_body = {{temperature = 0}}\n",
        f"[providers.forced]\n{table}{FORCED}",
        f"[providers.thinks]\n{table}{THINKS}",
        "[providers.anthropic]\nmax_tokens = 200\n",
    )
    (phoenix.home / "config.toml").write_text("".join(tables))
    (phoenix.home / "profiles").mkdir(exist_ok=True)
    (phoenix.home / "profiles" / "small.md").write_text(PROFILE)
    failed = 0
    groups = {"llamacpp/local": OPENAI, "anthropic/local": ANTHROPIC, f"local/{model.stem}": EMBEDDED}
    heading("model", "what was done", "what Phoenix showed")
    try:
        for reference, checks in groups.items():
            if reference.startswith("local/"):
                await server.end()  # two of them are too much for a small machine
            for check in checks:
                if names and check.__name__ not in names:
                    continue
                if check is not loading and server.runs:
                    await server.ready()
                failed += told(await check(Bench(server, phoenix, reference)), reference)
    finally:
        await server.end()
    return min(failed, 1)


def main() -> int:
    """Every row, unless some are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a folder for the server's log")
    parser.add_argument("rows", nargs="*")
    wanted = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as name:
        folder = wanted.keep or Path(name)
        return asyncio.run(drive(folder, wanted.model.resolve(), wanted.threads, wanted.rows))


if __name__ == "__main__":
    sys.exit(main())
