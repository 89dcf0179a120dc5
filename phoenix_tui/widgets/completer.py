"""Finds completions during typing, the newest request first, and chooses one by the keys of the dock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from textual.message import Message

from phoenix_tui.keys.active_keys import CLOSES
from phoenix_tui.widgets.bases import Opened, WidgetPart
from phoenix_tui.widgets.completion_popup import Completion, CompletionPopup, Token, drop_disguised, token_of
from phoenix_tui.widgets.composer import Composer
from phoenix_tui.widgets.readline import replace_at

if TYPE_CHECKING:
    from engine.executor.tool_call import UserTerminal
    from phoenix_tui.features.custom_commands import CustomCommands
    from phoenix_tui.widgets.completions import FileIndex, ProgramNames


AMONG_FILES = 4
"""Files listed above the conversations that match the same letters."""

LISTING_SHOWS = 0.15
"""Seconds after which a row says that files are still being listed."""
SETTLES = 0.5
"""Seconds that Tab or Enter waits for completions of the text; keys behind it wait too."""
LISTING = Completion("listing the files of this folder…", hint=True)

Arguments = Callable[[], Awaitable[Sequence[Completion]]]
Mentions = Callable[[str], Awaitable[Sequence[Completion]]]


log = logging.getLogger(__name__)


class CustomSource(Struct, frozen=True):
    """Skills and command files of the folder in view."""

    now: Callable[[], CustomCommands | None]
    """Returns the catalogue found last; None before the first look."""
    look: Callable[[], Awaitable[None]]
    """Looks at the files."""
    values: Callable[[str], Awaitable[Sequence[Completion]]]
    """Returns values for the last argument of a call, within a bound."""


class CompletionOffer(Protocol):
    """Shows completions; `chosen` is the row that Enter takes."""

    def __call__(self, completions: Sequence[Completion], chosen: int = 0) -> None:
        """Offer these completions; none closes the popup."""
        ...


async def no_mentions(_: str) -> Sequence[Completion]:
    """Return no completions: the services are not open yet."""
    return ()


class Completer:
    """Shows completions through `offer`. Files come from one index per folder, kept while Phoenix runs."""

    def __init__(self, composer: Composer, offer: CompletionOffer) -> None:
        self._composer = composer
        self._offer = offer
        self._indexes: dict[Path, FileIndex] = {}
        self._files: FileIndex | None = None
        self._folder = Path()
        self.shell: UserTerminal | None = None
        """Terminal of the shell lines of the conversation in view; None where there is no conversation."""
        self._programs: ProgramNames | None = None
        self._looking: asyncio.Task[None] | None = None
        self._looked_at: str | None = ""
        """Text that was looked at last; None where it belonged to another folder."""
        self._offered_for: str | None = None
        """Text that the offered completions complete; None while none of them can be taken."""
        self.used: Callable[[], Sequence[str]] = tuple
        """Names of commands by use; set when the services are open."""
        self.mentions: Mentions = no_mentions
        """Conversations for the text after an `@`; set when the services are open."""
        self._custom_source: CustomSource | None = None
        self._custom_due = False
        """True from the "/" of a line until its look at the files has ended: letters typed meanwhile stop it."""
        self.arguments: Mapping[str, Arguments] = {}
        """Completions of a command's argument, by its name; set when the services are open."""

    def look_in(self, folder: Path, shell: UserTerminal | None = None) -> None:
        """Files are those of this folder from now on, in shell lines those of the folder they run in."""
        from phoenix_tui.widgets.completions import FileIndex  # noqa: PLC0415 - the first frame needs none of it

        self._folder, self.shell = folder, shell
        self._looked_at = None
        self._files = self._indexes.setdefault(folder, FileIndex(folder))
        if "@" in self._composer.text:
            self.look()  # written before there was a listing

    def offer_custom(self, source: CustomSource) -> None:
        """Offer skills and command files from now on: the services are open."""
        self._custom_source = source
        if self._composer.text.startswith("/"):
            self.look()  # written before

    def look(self) -> None:
        """Offer completions after a change of the text or the cursor, now or as soon as they are found."""
        from phoenix_tui.widgets import completions  # noqa: PLC0415 - the first frame needs none of it

        self._stop()
        self._offered_for, self._looked_at = None, self._composer.text
        token = token_of(self._composer)
        line = self._composer.document.get_line(token.row)
        if token.text.startswith("@") and self._files is not None:
            self._begin(self._complete_mention(self._files, token.text[1:]))
        elif self._composer.text.startswith("!"):
            self._begin(self._shell_word(line))
        elif hint := completions.argument_hint(line, token.row):
            self._begin(self._argument(hint, line))
        elif self._custom_source is not None and token.row == 0 and line.startswith("/"):
            self._offer_calls(self._custom_source, token, line)
        else:
            self._show(token, completions.command_completions(token, self.used()))

    def catch_up(self) -> None:
        """Look at a text that has changed: a key may come ahead of the message that says so, or a message late."""
        if self._composer.text != self._looked_at:
            self.look()

    async def settle(self) -> bool:
        """Wait until the newest completions are offered; False where none match the text after `SETTLES`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLES):
                while self._looking is not None and not self._looking.done():  # another may take its place meanwhile
                    await asyncio.wait((self._looking,))
        return self._looking is None or self._looking.done() or self._offered_for == self._composer.text

    def close(self) -> None:
        """Offer nothing."""
        self._stop()
        self._offer([])

    def _begin(self, looking: Coroutine[None, None, None]) -> None:
        self._looking = asyncio.create_task(looking)
        self._looking.add_done_callback(_log_failure)

    def _stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _complete_mention(self, files: FileIndex, query: str) -> None:
        """Complete from the existing listing first; again if a newer one differs."""
        at_hand = files.is_listed
        if at_hand:
            await self._show_mentions(files, query)
        listing = asyncio.ensure_future(files.refresh())
        if not at_hand:
            await asyncio.wait((listing,), timeout=LISTING_SHOWS)
            if not listing.done():
                self._offer([LISTING])
        if await listing or not at_hand:
            await self._show_mentions(files, query)

    async def _show_mentions(self, files: FileIndex, query: str) -> None:
        found, others = await files.completions(query), await self.mentions(query)
        self._show(token_of(self._composer), [*found[:AMONG_FILES], *others, *found[AMONG_FILES:]])

    async def _argument(self, hint: Completion, line: str) -> None:
        name, _, written = line.removeprefix("/").partition(" ")
        source = self.arguments.get(name.lower())
        values = await source() if source is not None else ()
        wanted = written.strip().lower()
        found = [one for one in values if wanted in f"{one.text} {one.shown} {one.meaning}".lower()]
        found.sort(key=lambda one: not (one.shown or one.text).lower().startswith(wanted))
        whole = any(one.text.lower() == wanted for one in found)
        self._offer([hint] if whole else [hint, *found], 1 if wanted and not whole and found else 0)

    async def _shell_word(self, line: str) -> None:
        from phoenix_tui.text.shell_words import word_at  # noqa: PLC0415 - the first frame needs none of it
        from phoenix_tui.widgets.completions import ProgramNames, shell_completions  # noqa: PLC0415 - as above

        self._programs = programs = self._programs or ProgramNames()
        folder = self._folder / (self.shell.folder if self.shell is not None else "")
        prompts = self._composer.draft.prompts
        earlier = [one for one in (prompts.entries if prompts is not None else ()) if one.startswith("!")]
        column = self._composer.cursor_location[1]
        word = word_at(line, column)
        self._offer(await asyncio.to_thread(shell_completions, word, line[:column], folder, programs, earlier))

    def _offer_calls(self, source: CustomSource, token: Token, line: str) -> None:
        """Offer from memory at once, as Enter may be next; again where the files, looked at once per line, changed."""
        from phoenix_tui.widgets.completions import custom_completions  # noqa: PLC0415 - as in `look`

        before = source.now()
        found = custom_completions(token, line, before, self.used())
        self._show(token, found)
        if token.start != 0:
            self._begin(self._offer_values(source, token, line, found))
            return

        async def look() -> None:
            await source.look()
            self._custom_due = False
            if (after := source.now()) is not before:
                self._show(token, custom_completions(token, line, after, self.used()))

        self._custom_due = self._custom_due or token.text == "/" or before is None
        if self._custom_due:
            self._begin(look())

    async def _offer_values(self, source: CustomSource, token: Token, line: str, hint: Sequence[Completion]) -> None:
        """Offer values behind the hint: Enter sends what is written, Tab takes the first."""
        written = line[: token.end]
        values = [one for one in await source.values(written) if one.text != written.partition(" ")[2]]
        if values:
            self._offer([*hint, *values])

    def _show(self, token: Token, found: Sequence[Completion]) -> None:
        """Offer the completions, except for a file that is written in full; a command stays to be run."""
        if any(one.text == token.text and not one.goes_on for one in found):
            found = [one for one in found if one.text == token.text and not token.text.startswith("@")]
        self._offer(found)
        self._offered_for = self._composer.text


def _log_failure(looking: asyncio.Task[None]) -> None:
    """Completions that fail are not there; the log says why."""
    error = None if looking.cancelled() else looking.exception()
    if error is not None:
        log.warning("completions failed: %s", error, exc_info=error)


class Chosen(Message, namespace="dock"):
    """A command was chosen that needs nothing more."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Completing(WidgetPart):
    """A part of the dock."""

    composer: Composer
    popup: CompletionPopup
    completer: Completer

    def move_completion(self, by: int) -> None:
        """Move the selection of the open completions."""
        self.popup.move(by)

    async def take_completion(self, *, send: bool) -> None:
        """Put the chosen completion into the text; with `send`, a whole command is run at once.

        The composer awaits it: keys typed behind Tab or Enter are read when it is done, never overwritten by it.
        """
        text = self.composer.text
        settled = await self.completer.settle()
        if self.composer.text != text:
            return  # another draft came into view meanwhile
        if not settled:
            if send:
                self.composer.keys.hand_over()
            return
        chosen = self.popup.choice
        if chosen is not None and chosen.hint and not send:
            self.popup.move(1)
            chosen = self.popup.choice
        self.offer([])
        if chosen is None or chosen.hint:
            if send:
                self.composer.keys.hand_over()
            return
        self._take(chosen, send=send)

    def _take(self, chosen: Completion, *, send: bool) -> None:
        token, line = token_of(self.composer), self.composer.document.get_line(0)
        argument = token.row == 0 and line.startswith("/") and not chosen.text.startswith(("/", "@"))
        start = line.index(" ") + 1 if argument else token.start
        if send and chosen.runs:
            self.composer.take()
            self.post_message(Chosen(line[:start] + chosen.text if argument else chosen.text))
            return
        end = "" if chosen.goes_on and not send else " "
        replace_at(self.composer, chosen.text + end, (token.row, start), (token.row, token.end))

    def offer(self, completions: Sequence[Completion], chosen: int = 0) -> None:
        """Show completions; none closes. One that would insert more text than its row shows is not offered."""
        completions = drop_disguised(completions)
        takeable = any(not one.hint for one in completions)
        if self.composer.keys.completing != takeable:
            self.post_message(Opened(CLOSES if takeable else ""))
            self.composer.vim.tell()  # Tab has another action in a shell line
        self.popup.show(completions, chosen)
        self.composer.keys.completing = takeable
