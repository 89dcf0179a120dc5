"""The keys of the block cursor: Alt+Up takes it, then vim's letters or the arrows move it and letters act."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.widgets.blocks.agent_cell import agents_of
from phoenix_tui.widgets.transcript import signals
from phoenix_tui.widgets.transcript.gallery import Gallery, Pictures
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.painted import PaintedTranscript
from phoenix_tui.widgets.transcript.runs import opened_runs
from phoenix_tui.widgets.transcript.stops import is_human

if TYPE_CHECKING:
    from phoenix_tui.widgets.transcript.targets import Target


class BlockKeys(PaintedTranscript):
    """What the keys of the block cursor do; without it the arrows scroll."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.BLOCKS)

    def __init__(self, model: TranscriptModel, widget_id: str | None) -> None:
        super().__init__(model, widget_id)
        self.gallery = Gallery(self, self.canvas)

    def set_pictures(self, source: Pictures | None) -> None:
        """Where the pictures of stored images come from; without it none are shown."""
        self.gallery.use(source)

    @abstractmethod
    def action_fold(self, key: str) -> None:
        """Fold or open one part."""

    @abstractmethod
    def place_again(self) -> None:
        """Find the window's place and paint all of it."""

    def take_blocks(self) -> bool:
        """Turn the block cursor on; False where there is no block."""
        if not self.display or not (self.canvas.cursor.is_on or self.canvas.cursor.start()):
            return False
        self._settle()
        self.screen.set_focus(self)  # now: the next key is for the block
        self.post_message(signals.CursorMoved(self, is_on=True))
        return True

    def leave_blocks(self) -> bool:
        """Turn the block cursor off; False where it was off."""
        if not self.canvas.cursor.is_on:
            return False
        self.canvas.cursor.leave()
        self._settle()
        self.post_message(signals.CursorMoved(self, is_on=False))
        return True

    def on_blur(self) -> None:
        """Whoever goes to write leaves the blocks; a sheet or another window keeps them."""
        here = self.app.app_focus  # pyright: ignore[reportUnknownMemberType] - Textual leaves the app's type open
        if here and self.screen.is_current:
            self.leave_blocks()

    def action_block(self, by: int) -> None:
        """To the block above or below; without the cursor a row up or down."""
        if not self.canvas.cursor.is_on:
            (self.action_scroll_up if by < 0 else self.action_scroll_down)()
        else:
            self.canvas.cursor.move(by)
            self._settle()

    def action_block_end(self, by: int) -> None:
        """To the first or the last block; without the cursor to the first or the last row."""
        if self.canvas.cursor.is_on:
            self.canvas.cursor.end(by)
            self._settle()
        elif by < 0:
            self.action_scroll_home()
        else:
            self.action_scroll_end()

    def action_block_prompt(self, by: int) -> None:
        """To the prompt above or below."""
        if self.canvas.cursor.is_on:
            self.go_prompt(by)

    def action_block_toggle(self) -> None:
        """Open or fold the block under the cursor, or the lowest in sight that can be; sub-agents are gone to."""
        chosen = self.canvas.cursor.chosen()
        if chosen is not None and (agents := self._agents_in(chosen.part.key)):
            which = agents[0] if len(agents) == 1 else f"at {agents[0]}"
            self.call_later(self.run_action, f"screen.command({f'agents {which}'!r})")
            return
        key = self.canvas.last_foldable() if chosen is None else chosen.part.key
        if key and (chosen is None or chosen.part.foldable):
            self.action_fold(key)

    def _agents_in(self, key: str) -> Sequence[str]:
        """The sub-agents that a block's call put to work."""
        kind, _, call_id = key.partition(":")
        view = self.canvas.model.calls.get(call_id) if kind == "call" else None
        return agents_of(view) if view is not None else ()

    def action_block_fold(self) -> None:
        """Fold the block under the cursor; where it is folded, the run of reads it was opened from."""
        chosen, stack = self.canvas.cursor.chosen(), self.canvas.stack
        if chosen is None:
            return
        key = chosen.part.key
        if not (chosen.part.foldable and stack.is_open(key)):
            key = next(iter(opened_runs(stack.model, chosen.slot + 1, stack.opened)), "")
        if key:
            self.action_fold(key)

    def action_block_leave(self) -> None:
        """Leave the blocks."""
        self.leave_blocks()

    def action_block_deed(self, name: str) -> None:
        """Do something with the block under the cursor."""
        from phoenix_tui.widgets.transcript.targets import REFUSALS, Deed, target_of  # noqa: PLC0415 - after first frame

        chosen = self.canvas.cursor.chosen()
        if chosen is None:
            return
        target, deed = target_of(self.canvas.model, chosen), Deed[name]
        if deed is Deed.OPEN_FILE and Deed.OPEN_IMAGE in target.deeds:
            deed = Deed.OPEN_IMAGE
        if deed not in target.deeds:
            self.post_message(signals.Wanted(self, signals.Remark(REFUSALS[deed])))
        elif deed is Deed.TOGGLE:
            self.action_fold(chosen.part.key)
        elif deed is Deed.COPY:
            self.post_message(signals.SelectionCopied(self, target.text))
        else:
            self.post_message(signals.Wanted(self, signals.BlockDeed(deed, target)))

    def go_prompt(self, by: int) -> None:
        """To the nearest prompt above (-1) or below (1), with the cursor where that is on."""
        model, cursor = self.canvas.model, self.canvas.cursor
        here = self.canvas.viewport.slot if cursor.slot is None else cursor.slot
        slot = here + by
        if by < 0 and cursor.slot is None and self.canvas.viewport.row:
            slot = here
        while 0 <= slot < model.count:
            human = is_human(model, slot + 1)
            if human is None:
                self.post_message(signals.Wanted(self, signals.FarPrompt(slot + 1, by)))
                return
            if human:
                self.jump(slot + 1)
                return
            slot += by
        if by > 0:
            self.action_scroll_end()

    def jump(self, seq: int) -> None:
        """Put message `seq` at the top, loading it where it must; the block cursor goes along where it is on."""
        self.canvas.viewport.stand_at(seq - 1)
        if self.canvas.cursor.is_on:
            self.canvas.cursor.go(seq - 1)
            self.canvas.viewport.stand_at(seq - 1)
        self.place_again()

    def target(self) -> Target | None:
        """The block under the cursor and what can be done with it."""
        from phoenix_tui.widgets.transcript.targets import target_of  # noqa: PLC0415 - not needed for the first frame

        chosen = self.canvas.cursor.chosen()
        return None if chosen is None else target_of(self.canvas.model, chosen)

    def _settle(self) -> None:
        self.canvas.viewport.height = self.size.height - self.canvas.reserved
        self.place_again()
