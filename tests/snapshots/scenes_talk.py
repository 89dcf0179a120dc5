"""Scenes of a conversation: its start, what is said and done in it, questions and plans."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec.structs import replace

from engine.machine.messages import Origin, Role, TextBlock
from engine.machine.states import AwaitingLlm, Errored, Idle, RetryWait, Run, StopCause
from engine.machine.texts import describe_stop
from engine.updates import LiveTextDropped, RunEnded, TextArrived, ToolDrafted, ToolProgressed
from phoenix_tui.features.service_interfaces import LocalOffer
from phoenix_tui.styles.themes import HIGH_CONTRAST, LIGHT
from tests.phoenix_tui.shell.test_shell_ask import ask_question
from tests.phoenix_tui.shell.test_shell_todo import plan_question
from tests.snapshots.booth import ALL, LARGE, MIDDLE, SMALL, Booth, Size
from tests.snapshots.told import Teller, asks_to_patch, asks_to_run, call, fails, fixes, model_of, patches, reads
from tests.support.fake_engine import RUN, FakeOnboarding
from tests.support.questions import COLOUR, PARTS
from tests.support.shell import Shell
from tests.support.still_time import UPTIME
from tests.support.story import CODE, REPORT
from tools.contract import OutputChunk
from tools.displays import TodoItem, TodoList, TodoStatus

SOAK: Final = call("soak", "bash", command="sh soak.sh")
ROUNDS: Final = "".join(f"round {n}: 250 webhooks forwarded, 0 lost\n" for n in range(1, 8))
TITLE: Final = "Why does test_backoff fail?"


@asynccontextmanager
async def talking(place: Booth, *steps: Callable[[Teller], None], **asked: Any) -> AsyncIterator[Shell]:
    """The app with one conversation in which `steps` have happened."""
    conversation = place.engine.seed(TITLE)
    model_of(conversation)
    async with place.opened(**asked) as shell:
        await shell.open(conversation)
        for step in steps:
            step(Teller(conversation))
        yield shell


async def told(
    place: Booth, name: str, *steps: Callable[[Teller], None], shows: str, sizes: tuple[Size, ...] = ALL, **asked: Any
) -> None:
    """One screen after `steps`."""
    async with talking(place, *steps, **asked) as shell:
        await shell.until(lambda: shows in shell.text)
        await place.take(shell, name, sizes)


def streams(teller: Teller) -> None:
    """The report is being written."""
    teller.thinks(3.0, Run("run-1", 50, 4))
    for piece in (REPORT[:60], REPORT[60:]):
        teller.conversation.play(TextArrived(piece))


def drafts(teller: Teller) -> None:
    """A call is being written."""
    teller.prompt("Write the changelog")
    teller.conversation.play(TextArrived("I write it to a file of its own."), ToolDrafted("write_file", 1_234))


def soaks(teller: Teller) -> None:
    """A command runs."""
    teller.prompt("Run the soak test")
    teller.wants("I let it run for a while.", SOAK)
    teller.runs(SOAK, "sh soak.sh", 67.0)
    teller.conversation.play(ToolProgressed(SOAK.id, OutputChunk(ROUNDS)))


def stops(teller: Teller) -> None:
    """Esc, while it runs."""
    teller.conversation.play(LiveTextDropped(cancelled=True))
    teller.save(Role.SYSTEM, Origin.NOTICE, TextBlock(describe_stop(67, StopCause.USER, processes=3)))
    teller.conversation.play(RunEnded(RUN.id, "cancelled", "", "", 1))
    teller.conversation.become(Idle(3))


def waits(teller: Teller) -> None:
    """The server is overloaded."""
    teller.prompt("Run the soak test")
    teller.conversation.engine.now = UPTIME - 2.5
    teller.conversation.become(AwaitingLlm(1, RUN, RetryWait(20.0, "Overloaded (529)"), 1))


def refused(teller: Teller) -> None:
    """A wrong key."""
    teller.prompt("Run the soak test")
    words = "Anthropic refused the key (401: invalid x-api-key). Set ANTHROPIC_API_KEY, or paste a key after /key."
    teller.conversation.play(RunEnded(RUN.id, "error", words, "auth", 1))
    teller.conversation.become(Errored(1, "auth", words, retryable=True, run_id=RUN.id))


async def interrupted(place: Booth) -> None:
    """A crash cut a turn off."""
    async with talking(place, soaks) as shell:
        conversation = place.engine.seed("Cut off", messages=0)
        Teller(conversation).save(Role.USER, Origin.HUMAN, TextBlock("Run the soak test"))
        conversation.resumable = True
        await shell.open(conversation)
        await shell.until(lambda: "Enter resumes" in shell.text)
        await place.take(shell, "interrupted", (SMALL,))


async def blocks(place: Booth) -> None:
    """The block cursor on code, on a prompt, on a change; the list of turns."""
    async with talking(place, fixes, _shows_the_loop) as shell:
        await shell.until(lambda: "make test" in shell.text)
        await shell.press("alt+up", "j", shows="▌python code")
        await place.take(shell, "code")
        await shell.press("escape", until=lambda: "▌" not in shell.text)
        await shell.press("f2", shows="Turns")
        await place.take(shell, "turns")
        await shell.press("escape", until=lambda: shell.top is shell.screen)
        await shell.press("ctrl+o", "alt+up", "g", shows="▌prompt")
        await place.take(shell, "prompt", (SMALL,))
        await shell.until(lambda: shell.top is shell.screen)
        for _ in range(12):
            if "▌patch" in shell.text:
                break
            await shell.press("j")
        await shell.until(lambda: "▌patch" in shell.text)
        await place.take(shell, "diff")


def _shows_the_loop(teller: Teller) -> None:
    teller.prompt("Show me the loop as it is now.")
    teller.says(CODE)


async def plain(place: Booth) -> None:
    """Glyphs of ASCII, for terminals without UTF-8."""
    async with talking(place, asks_to_run, plain=True) as shell:
        await shell.until(lambda: "y  Yes, once" in shell.text)
        await place.take(shell, "plain", (SMALL,))


async def titled(place: Booth) -> None:
    """Titles that are long, wide, hostile."""
    for title in (
        "日本語のファイル名が壊れる、すべてのフォルダーで、何度でも、直してほしい",
        "🦆 rename duck to drake",
        "a" * 150,
    ):
        place.engine.seed(title, messages=2)
    async with talking(place, fixes) as shell:
        wide = place.engine.seed("\x1b[31m名前 " + "very long title " * 12, messages=4)
        wide.record = replace(wide.record, message_count=4)
        await shell.open(wide)
        await shell.until(lambda: "message 3" in shell.text)
        await place.take(shell, "titles")


def one(*steps: Callable[[Teller], None], **how: Any) -> Callable[[str], Callable[[Booth], Awaitable[None]]]:
    """A scene of one screen, which gives the screen its name."""
    return lambda name: lambda place: told(place, name, *steps, **how)


ONES: Final = {
    "approval-bash": one(asks_to_run, shows="y  Yes, once"),
    "approval-patch": one(asks_to_patch, shows="y  Yes, once"),
    "streaming": one(reads, fails, patches, streams, shows="Both tests pass"),
    "drafting": one(drafts, shows="preparing write_file", sizes=(SMALL,)),
    "fixed": one(fixes, shows="should LIMIT"),
    "light-theme": one(fixes, shows="should LIMIT", sizes=(SMALL,), theme=LIGHT.name),
    "high-contrast-theme": one(fixes, shows="should LIMIT", sizes=(SMALL,), theme=HIGH_CONTRAST.name),
    "tool-running": one(soaks, shows="round 7"),
    "cancelled": one(soaks, stops, shows="3 processes ended", sizes=(SMALL,)),
    "retrying": one(waits, shows="retrying 1/3", sizes=(SMALL, MIDDLE)),
    "refused": one(refused, shows="paste a key"),
}


MEBIBYTE: Final = 1 << 20
OFFER: Final = LocalOffer("qwen2.5-coder-1.5b", 1_066 * MEBIBYTE, 1_900 * MEBIBYTE, "huggingface.co/Qwen")


async def welcome(place: Booth) -> None:
    """Start without a configuration."""
    async with place.opened(onboarding=FakeOnboarding(OFFER)) as shell:
        await shell.until(lambda: "No model yet" in shell.text)
        await place.take(shell, "welcome")


async def working(place: Booth) -> None:
    """A model is there, nothing was said."""
    async with place.opened(model="anthropic/claude-sonnet-5-5") as shell:
        await place.take(shell, "new", (SMALL,))


BOTH: Final = (SMALL, LARGE)
LONG: Final[dict[str, Any]] = {
    "question": "再試行の上限はどこに置きますか。Where shall the upper bound live, given that both clients read it?",
    "header": "Upper bound",
    "options": [
        {
            "label": "In relay/retry.py beside the doubling, as a constant that the tests import",
            "description": "One place; the command line cannot change it. \x1b[2JNothing else is touched.",
        },
        {"label": "In the settings", "description": "Users can change it.", "preview": "[retry]\nmost_seconds = 30"},
    ],
}


async def questions(place: Booth) -> None:
    """One question, three of them, the selected option with its preview, the line for own words."""
    for name, asked in (("one", (COLOUR,)), ("several", (LONG, PARTS, COLOUR))):
        async with place.opened() as shell:
            await shell.say("Bound the delay")
            shell.conversation.ask(ask_question(*asked))
            await shell.shows("1 ( )")
            shell.answering.since = shell.question.gate.since = shell.answering.typed_at = 0.0  # long ago
            shown = shell.question._question
            assert shown is not None
            shell.question._offer(shown, guarded=False)
            await place.take(shell, name, BOTH)
            if name == "several":
                await shell.press("down", "down", shows="most_seconds")
                await place.take(shell, "selected", BOTH)
                await shell.press("o", shows="Enter takes your words")
                await place.take(shell, "words", (SMALL,))


ITEMS: Final = (
    TodoItem("Read tests/test_backoff.py", TodoStatus.COMPLETED),
    TodoItem("Find where the delay is doubled", TodoStatus.COMPLETED),
    TodoItem("Ask about the upper bound", TodoStatus.CANCELLED),
    TodoItem("Bound the delay in relay/retry.py", TodoStatus.IN_PROGRESS, "Bounding the delay in relay/retry.py"),
    TodoItem("再試行の上限をテストで確かめる。長い文でも列は揃ったままで、途中で切れるときは文字の境目で切れる。"),
    TodoItem(f"Rename {'retry_with_exponential_backoff_' * 8}"),
    TodoItem("Clear\x1b[2J the\x07 bell and \u202eright to left\u202c"),
)
MANY: Final = tuple(
    TodoItem(f"Migrate table number {number}", TodoStatus.COMPLETED if number < 40 else TodoStatus.PENDING)
    for number in range(1, 101)
)


async def todo_list(place: Booth) -> None:
    """No list, one row of it, all of it, a hundred items."""
    async with place.opened() as shell:
        conversation = await shell.say("Fix the backoff")
        await shell.press("ctrl+t", until=lambda: shell.toasts)
        await place.take(shell, "empty", (SMALL,))
        conversation.set_todos(TodoList(ITEMS))
        await shell.shows("todo 3/7")
        await place.take(shell, "row", BOTH)
        await shell.press("ctrl+t", shows="▸")
        await place.take(shell, "all", BOTH)
        conversation.set_todos(TodoList(MANY))
        await shell.shows("39/100")
        await place.take(shell, "hundred", BOTH)
        await shell.press("escape", "ctrl+t", "ctrl+l", until=lambda: shell.rows.has_focus)
        await place.take(shell, "in-the-list", BOTH)


SHORT: Final = """# Bound the delay

The delay in `relay/retry.py` doubles without a limit.

1. Add `max_delay = 60.0` to **Backoff**
2. Use it in `next_delay`
3. Test it: `tests/test_backoff.py`

| file | change |
|---|---|
| relay/retry.py | +4 -1 |
| tests/test_backoff.py | +12 |
"""
WORDS: Final = f"表を移す, and {'check_each_column_' * 6}"
LONG_PLAN: Final = "\n\n".join(f"## Step {number}\n\nMigrate table number {number}, {WORDS}" for number in range(1, 40))


async def plan(place: Booth) -> None:
    """A plan, a long one, the line for remarks, the editor."""
    for name, text in (("short", SHORT), ("long", LONG_PLAN)):
        async with place.opened() as shell:
            await shell.say("Bound the delay")
            shell.conversation.ask(plan_question(text))
            await shell.shows("y  Yes, and ask")
            await place.take(shell, name, BOTH)
            if name == "short":
                shell.answering.since = shell.question.gate.since = shell.answering.typed_at = 0.0  # long ago
                await shell.press("r", shows="Enter sends your remarks")
                await place.take(shell, "remarks", (SMALL,))
