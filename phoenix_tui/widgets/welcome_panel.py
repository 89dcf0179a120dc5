"""Content of an empty conversation: examples, and the ways to a model where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from phoenix_tui.cli.names import VERSION
from phoenix_tui.keys import active_keys
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.text.labels import Tone, short_model
from phoenix_tui.widgets.bases import Flowing, wrap_hanging
from phoenix_tui.widgets.conversation_list import path_within
from tools.clean import clean_line
from tools.wording import byte_size

if TYPE_CHECKING:
    from engine.ports import ModelInfo
    from phoenix_tui.features.service_interfaces import InstallProgress, LocalOffer
    from phoenix_tui.widgets.status_line import TitleRow

GUIDE: Final = "demo/guide"
NAME: Final = f"Phoenix {VERSION}"
EXAMPLES: Final = ("What is this project?", "What changed since the last commit?", "Run the tests")
BETWEEN: Final = "  ·  "
TRY: Final = "Try   "
BAR: Final = 30
MEGABYTE: Final = 1_000_000
KEY_CELLS: Final = 9
"""Cells of a key or command and the gap behind it."""
AIR_FROM: Final = 120
"""Columns of the screen from which the words are in its middle."""


class Welcome(Struct, frozen=True):
    """Content of the panel besides the folder, which the title row knows."""

    model: str
    offer: LocalOffer | None = None
    servers: Sequence[ModelInfo] = ()
    installing: InstallProgress | None = None
    trouble: str = ""

    @property
    def needs_model(self) -> bool:
        return self.model == GUIDE


class WelcomePanel(Vertical):
    """Never a logo, never a zero."""

    DEFAULT_CSS = """
    WelcomePanel {
        height: 1fr; padding: 1 2 0 2; display: none; overflow-y: auto;
        & Flowing { max-width: 112; }
        &.-air { align: center middle; padding: 0 2; }
    }
    """
    HELP = "Examples, and how to get a model."

    class Installed(Message):
        """A model was installed."""

        def __init__(self, reference: str) -> None:
            super().__init__()
            self.reference = reference

    def __init__(self) -> None:
        super().__init__()
        self.welcome: Welcome | None = None
        self._words = Flowing(id="words")
        self._title: TitleRow | None = None
        """Title row above it."""
        self._shown: tuple[Welcome, str, str, str] | None = None
        """Content as last drawn, with folder, branch and notice."""
        self.notice = ""
        """Sentence about files of this folder that are not used."""
        self.held = False
        """True to hide it for now: an action was requested at the start, and a greeting would vanish at once."""

    def compose(self) -> ComposeResult:
        yield self._words

    def on_resize(self) -> None:
        """Stand in the middle of a large screen."""
        self.set_class(self.screen.size.width >= AIR_FROM and self._words.size.height < self.size.height, "-air")

    def show(self, welcome: Welcome | None, title: TitleRow) -> None:
        """Show this, or hide the panel; while it is shown it names the folder, and the title row above does not."""
        if self._title is not title:
            if self._title is not None:
                self._title.names_folder = True
            self._title = title
            self.watch(title, "heading", self._draw, init=False)
        title.names_folder = welcome is None
        self.welcome = welcome
        if self.display is not (welcome is not None):  # else an unnecessary layout of the whole screen
            self.display = welcome is not None
        self._draw()

    def tell(self, notice: str) -> None:
        self.notice = notice
        self._draw()

    def _draw(self) -> None:
        if self.welcome is None or self._title is None:
            return
        heading = self._title.heading
        shown = self.welcome, clean_line(heading.folder), clean_line(heading.branch), self.notice
        if shown != self._shown:
            self._shown = shown
            self._words.flow(partial(rows, *shown))


def rows(welcome: Welcome, folder: str, branch: str, notice: str, width: int) -> list[Content]:
    """The panel's words at a width: wrapped text continues under its own words, not under its key."""
    name, behind = Content.styled(NAME, "bold"), f" ({branch})" if branch else ""
    place = Content.styled(f"{path_within(folder, width - cell_len(behind)).rstrip()}{behind}", Tone.QUIET.value)
    gap = width - name.cell_length - place.cell_length
    made = [Content.assemble(name, " " * gap, place)] if gap > 1 else [name, *place.wrap(width)]
    if notice:
        made += [*Content.styled(clean_line(notice), Tone.NEEDS_YOU.value).wrap(width), Content("")]
    made += _without_model(welcome, width) if welcome.needs_model else [Content(short_model(welcome.model))]
    if welcome.trouble:
        made += [Content(""), *Content.styled(clean_line(welcome.trouble), Tone.BAD.value).wrap(width)]
    return [*made, Content(""), *_examples(width)]


def _examples(width: int) -> list[Content]:
    keys = hint(("complete", "next"), ("send", "sends"))
    in_one = Content.assemble(TRY, *_joined([Content.styled(one, Tone.YOU.value) for one in EXAMPLES]))
    gap = width - in_one.cell_length - cell_len(keys)
    if gap > 1:
        return [Content.assemble(in_one, " " * gap, (keys, Tone.QUIET.value))]
    apart = [(TRY if not number else " " * len(TRY), example) for number, example in enumerate(EXAMPLES)]
    below = [Content.assemble(before, (example, Tone.YOU.value)) for before, example in apart]
    shown = [in_one] if in_one.cell_length <= width else below
    shown.append(Content.assemble(" " * len(TRY), (keys, Tone.QUIET.value)))
    return [row for one in shown for row in wrap_hanging(one, len(TRY), width)]


def _joined(parts: Sequence[Content]) -> list[Content]:
    return [piece for part in parts for piece in (Content.styled(BETWEEN, Tone.QUIET.value), part)][1:]


def _without_model(welcome: Welcome, width: int) -> list[Content]:
    bold = f"bold {Tone.NEEDS_YOU.value}"
    missing = Content.assemble(("No model yet. ", bold), "You are talking to a small built-in guide.")
    local = Content("use a server on this machine (Ollama, LM Studio, llama.cpp …)")
    if welcome.servers:
        found = ", ".join(clean_line(server.reference) for server in welcome.servers)
        words = "; nothing is sent to it until then"
        local = Content.assemble("use the server found on this machine: ", (found, Tone.GOOD.value), words)
    made = [*missing.wrap(width), Content("")]
    made += _way("/key", Content("paste an API key here (Anthropic, OpenAI, OpenRouter, …)"), width)
    made += _way("/model", local, width)
    if welcome.installing is not None:
        stops = Content.styled(hint(("stop", "stops the download")), Tone.QUIET.value)
        made += [Content(""), _progress(welcome.installing), stops]
    elif welcome.offer is not None:
        made += _way(active_keys.key("send"), _offer(welcome.offer), width)
    return made


def _way(way: str, words: Content, width: int) -> list[Content]:
    """A way to a model: its command or key, then what it does."""
    return wrap_hanging(Content.assemble((way.ljust(KEY_CELLS), Tone.YOU.value), words), KEY_CELLS, width)


def _offer(offer: LocalOffer) -> Content:
    if offer.refusal:
        return Content.styled(clean_line(offer.refusal), Tone.QUIET.value)
    size = byte_size(offer.download_bytes)
    return Content(f"try offline: a very small model, {size}, asks first; for trying Phoenix, not for work")


def _progress(progress: InstallProgress) -> Content:
    if not progress.total:
        return Content.styled(f"{clean_line(progress.step)}…", Tone.WORK.value)
    filled = min(BAR * progress.done // progress.total, BAR)
    percent = min(100 * progress.done // progress.total, 100)
    sizes = f"{progress.done / MEGABYTE:,.0f} of {progress.total / MEGABYTE:,.0f} MB"
    return Content.assemble(
        (f"{clean_line(progress.step)}  ", Tone.WORK.value),
        ("━" * filled, Tone.WORK.value),
        ("─" * (BAR - filled), Tone.QUIET.value),
        (f"  {percent}% {sizes}", Tone.QUIET.value),
    )
