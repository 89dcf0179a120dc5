"""Content of an empty conversation: what works now, and how to get a model where there is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from phoenix_tui.keys import active_keys
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import Flowing, wrap_hanging
from tools.clean import clean_line

if TYPE_CHECKING:
    from engine.ports import ModelInfo
    from phoenix_tui.features.service_interfaces import InstallProgress, LocalOffer

GUIDE: Final = "demo/guide"
NAME: Final = "Phoenix"
EXAMPLES: Final = ("What is this project?", "What changed since the last commit?", "Run the tests")
BAR: Final = 30
MEGABYTE: Final = 1_000_000
_KEY: Final = re.compile(r"\s*(?:/\w+|[\w+]+(?:, [\w+]+)?)  +")


class Welcome(Struct, frozen=True):
    """Content of the panel besides the title row, which has the folder, and the status line, which has the model."""

    mode: str
    needs_model: bool = False
    offer: LocalOffer | None = None
    servers: Sequence[ModelInfo] = ()
    installing: InstallProgress | None = None
    trouble: str = ""


class WelcomePanel(Vertical):
    """Never a logo, never a zero."""

    DEFAULT_CSS = """
    WelcomePanel {
        height: 1fr; padding: 1 2; display: none; overflow-y: auto;
    }
    """
    HELP = "What works now, and how to get a model."

    class Installed(Message):
        """A model was installed."""

        def __init__(self, reference: str) -> None:
            super().__init__()
            self.reference = reference

    def __init__(self) -> None:
        super().__init__()
        self.welcome: Welcome | None = None
        self._words = Flowing(id="words")
        self.notice = ""
        """Sentence about files of this folder that are not used."""
        self.held = False
        """True to hide it for now: an action was requested at the start, and a greeting would vanish at once."""

    def compose(self) -> ComposeResult:
        yield self._words

    def show(self, welcome: Welcome | None) -> None:
        if welcome == self.welcome and self.display is (welcome is not None):
            return  # an unnecessary layout of the whole screen
        self.welcome = welcome
        self.display = welcome is not None
        if welcome is not None:
            self._words.flow(partial(rows, welcome, self.notice))

    def tell(self, notice: str) -> None:
        self.notice = notice
        if self.welcome is not None:
            self._words.flow(partial(rows, self.welcome, notice))


def rows(welcome: Welcome, notice: str, width: int) -> list[Content]:
    """The panel's words at a width: wrapped text continues under its own words, not under its key."""
    return [
        row
        for line in words(welcome, notice).split(allow_blank=True)
        for row in wrap_hanging(line, _indent(line.plain), width)
    ]


def _indent(line: str) -> int:
    """Indent of a line: behind the widest gap after a key, else its leading blanks."""
    behind_key = _KEY.match(line)
    return behind_key.end() if behind_key else len(line) - len(line.lstrip())


def words(welcome: Welcome, notice: str = "") -> Content:
    lines: list[tuple[str, str]] = [(f"{NAME}\n", "bold"), (f"{welcome.mode}\n\n", Tone.QUIET.value)]
    if notice:
        lines.append((f"{clean_line(notice)}\n\n", Tone.NEEDS_YOU.value))
    if welcome.needs_model:
        lines += _without_model(welcome)
    if welcome.trouble:
        lines.append((f"{clean_line(welcome.trouble)}\n\n", Tone.BAD.value))
    writes = hint(("complete", "inserts one of these"), ("send", "sends it"))
    lines += [
        ("Three things to try:\n", ""),
        *((f"  {example}\n", Tone.YOU.value) for example in EXAMPLES),
        (f"{writes}\n", Tone.QUIET.value),
    ]
    if not welcome.needs_model:
        lines.append(("\n@ names a file · / lists commands · ! runs a command · ? shows every key\n", Tone.QUIET.value))
    return Content.assemble(*lines).rstrip()


def _without_model(welcome: Welcome) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = [
        ("No model yet. ", f"bold {Tone.NEEDS_YOU.value}"),
        ("You are talking to a small built-in guide; type “help”.\n\n", ""),
    ]
    for server in welcome.servers:
        found = f"Found on this machine: {clean_line(server.reference)}"
        lines.append((f"{found}   /model uses it; until then nothing is sent to it\n", Tone.GOOD.value))
    if welcome.installing is not None:
        lines += [*_progress(welcome.installing), (f"{hint(('stop', 'stops the download'))}\n", Tone.QUIET.value)]
    elif welcome.offer is not None:
        lines += _offer(welcome.offer)
    lines.append((
        "\n/key  paste an API key, or paste it right here (stored in your keyring or a private file, never shown)\n\n",
        "",
    ))
    return lines


def _offer(offer: LocalOffer) -> list[tuple[str, str]]:
    if offer.refusal:
        return [(f"{clean_line(offer.refusal)}\n", Tone.QUIET.value)]
    sizes = f"{offer.download_bytes / MEGABYTE:,.0f} MB to download, {offer.memory_bytes / MEGABYTE:,.0f} MB of memory"
    return [
        (active_keys.key("send"), Tone.YOU.value),
        (f"  installs {clean_line(offer.name)}, which runs on this machine and needs no account; asks first\n", ""),
        (f"  {sizes}, from {clean_line(offer.source)}\n", Tone.QUIET.value),
    ]


def _progress(progress: InstallProgress) -> list[tuple[str, str]]:
    if not progress.total:
        return [(f"{clean_line(progress.step)}…\n", Tone.WORK.value)]
    filled = min(BAR * progress.done // progress.total, BAR)
    percent = min(100 * progress.done // progress.total, 100)
    sizes = f"{progress.done / MEGABYTE:,.0f} of {progress.total / MEGABYTE:,.0f} MB"
    return [
        (f"{clean_line(progress.step)}  ", Tone.WORK.value),
        ("━" * filled, Tone.WORK.value),
        ("─" * (BAR - filled), Tone.QUIET.value),
        (f"  {percent}% {sizes}\n", Tone.QUIET.value),
    ]
