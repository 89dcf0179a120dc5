"""The archive and the trash: removed conversations, brought back or removed for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.ports import ConversationChanges, StorageError
from engine.records import ConversationQuery
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.text_sheet import ConfirmSheet
from phoenix_tui.text.labels import ListGroup, Tone
from phoenix_tui.widgets.conversation_list import ConversationList
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.engine import Engine

MOST: Final = 5_000
"""Conversations that are read; more are found by /search."""
MARGIN: Final = 14
"""Cells that a heading takes beside its hint."""
LEAST_ROWS: Final = 2
"""Least rows of the list: those of its text when it is empty."""
CHROME: Final = 3
"""Rows of the sheet beside those of the list: rule, heading, foot."""
HEADINGS: Final = {ListGroup.ARCHIVED: "Archive", ListGroup.TRASH: "Trash"}
DELETES: Final = {ListGroup.ARCHIVED: "deletes", ListGroup.TRASH: "deletes permanently"}


class ArchiveSheet(Sheet[str]):
    """Gives the id of a conversation that was brought back to be opened, else None."""

    DEFAULT_CSS = """
    ArchiveSheet {
        & Static { height: auto; }
        & ConversationList { height: 1fr; width: 1fr; background: $background; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "step_back", "Close", priority=True)]

    def __init__(self, engine: Engine, group: ListGroup, *, plain: bool = False) -> None:
        super().__init__()
        self._engine = engine
        self._group = group
        self.rows = ConversationList(plain=plain, view=group)

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield self.rows

    async def on_mount(self) -> None:
        """Read the list and take the focus."""
        await self._read()
        self.set_focus(self.rows)

    async def _read(self) -> None:
        trash = self._group is ListGroup.TRASH
        query = ConversationQuery(archived=not trash, deleted=trash, limit=MOST)
        # A replaced empty conversation was not deleted by the user.
        found = [one for one in await self._engine.list(query) if one.message_count or one.has_draft]
        self.rows.show(found, {}, self.rows.model.chosen)
        self.query_one(".sheet").styles.height = max(len(found), LEAST_ROWS) + CHROME
        least = (("restore", "restores"), ("delete", DELETES[self._group]))
        keys = hint(("open", "opens"), *least, ("mark", "marks"), ("filter", "filters"))
        if len(keys) + MARGIN > self.measure:
            keys = hint(*least)
        words = (f"   {keys}" if found else "", Tone.QUIET.value)
        self.query_one("#heading", Static).update(Content.assemble((HEADINGS[self._group], "bold"), words))

    def action_step_back(self) -> None:
        """Esc: end the filter, then the marks, then leave."""
        if not self.rows.leave():
            self.dismiss(None)

    @on(ConversationList.Opened)
    def open_row(self, event: ConversationList.Opened) -> None:
        """Bring one back and open it."""
        event.stop()
        self.run_worker(self._open(event.conversation_id))

    async def _open(self, conversation_id: str) -> None:
        if await self._change((conversation_id,), ConversationChanges(deleted=False, archived=False)):
            self.dismiss(conversation_id)

    @on(ConversationList.Wanted)
    def row_wanted(self, event: ConversationList.Wanted) -> None:
        """Bring back, delete, or remove for good."""
        event.stop()
        if event.ids:
            self.run_worker(self._do(event.action, event.ids))

    async def _do(self, action: str, ids: tuple[str, ...]) -> None:
        trash = self._group is ListGroup.TRASH
        match action:
            case "restore" | "archive":
                back = ConversationChanges(deleted=False) if trash else ConversationChanges(archived=False)
                await self._change(ids, back)
            case "delete" if trash:
                await self._purge(ids)
            case "delete":
                await self._change(ids, ConversationChanges(deleted=True))
            case _:
                return
        await self._read()

    async def _purge(self, ids: tuple[str, ...]) -> None:
        what = f"Delete {pluralize(len(ids), 'conversation')} permanently? This cannot be undone."
        question = ConfirmSheet(what, "remove", "keep")
        if cast("bool | None", await self.app.push_screen_wait(question)):
            try:
                self._say_refused(len(await self._engine.bulk.purge(ids)))
            except StorageError as error:
                self.app.notify(str(error), severity="error", markup=False)

    async def _change(self, ids: tuple[str, ...], changes: ConversationChanges) -> bool:
        """Apply the changes; returns True when all of them succeeded."""
        try:
            refused = len(await self._engine.bulk.change(ids, changes))
        except StorageError as error:
            self.app.notify(str(error), severity="error", markup=False)
            return False
        self._say_refused(refused)
        return not refused

    def _say_refused(self, count: int) -> None:
        if count:
            self.app.notify(f"{count} open in another Phoenix; close it there.", severity="error", markup=False)
