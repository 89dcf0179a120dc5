"""The keys of the block cursor: Alt+Up takes it, then vim's letters or the arrows move it and letters act."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from textual.widget import Widget

from phoenix_tui.widgets.blocks.tool_row import agents_of
from phoenix_tui.widgets.transcript import signals
from phoenix_tui.widgets.transcript.block_cursor import REFUSALS, BlockAction, Target, is_human, target_of
from phoenix_tui.widgets.transcript.model import find_opened_runs
from phoenix_tui.widgets.transcript.scroller import Canvas, Scroller


class BlockKeys:
    """Actions on the block under the cursor of a canvas; while the cursor is off the arrows scroll."""

    def __init__(self, view: Widget, canvas: Canvas, scroller: Scroller, fold: Callable[[str], None]) -> None:
        self._view = view
        self._canvas = canvas
        self._cursor = canvas.cursor
        self._scroller = scroller
        self._fold = fold
        self.orders: Mapping[str, Callable[[], object]] = {
            "up": partial(self._move, -1),
            "down": partial(self._move, 1),
            "first": partial(self._end, -1),
            "last": partial(self._end, 1),
            "prompt_above": partial(self._prompt, -1),
            "prompt_below": partial(self._prompt, 1),
            "toggle": self._toggle,
            "fold": self._fold_or_close_run,
            "leave": self.leave,
            "copy": partial(self._ask, BlockAction.COPY),
            "edit": partial(self._ask, BlockAction.EDIT),
            "fork": partial(self._ask, BlockAction.FORK),
            "file": partial(self._ask, BlockAction.OPEN_FILE),
        }
        """Actions of the keys and of the words in the row of keys, by their names in `keymap.KEYS`."""

    def take(self) -> bool:
        if not self._view.display or not (self._cursor.is_on or self._cursor.start()):
            return False
        self._scroller.fit()
        self._view.screen.set_focus(self._view)  # now: the next key is for the block
        self._view.post_message(signals.CursorMoved(self._view, is_on=True))
        return True

    def step(self, by: int) -> None:
        """Take the cursor, or move it to the block above (-1) or below (1) where it is on."""
        if self._cursor.is_on and self._view.has_focus:
            self._move(by)
        else:
            self.take()

    def leave(self) -> bool:
        if not self._cursor.is_on:
            return False
        self._cursor.leave()
        self._scroller.fit()
        self._view.post_message(signals.CursorMoved(self._view, is_on=False))
        return True

    def go_prompt(self, by: int) -> None:
        """Go to the nearest prompt above (-1) or below (1), with the cursor where that is on."""
        model, viewport = self._canvas.model, self._canvas.viewport
        here = viewport.slot if self._cursor.slot is None else self._cursor.slot
        slot = here if by < 0 and self._cursor.slot is None and viewport.row else here + by
        while 0 <= slot < model.count:
            human = is_human(model, slot + 1)
            if human is None:
                self._want(signals.FarPrompt(slot + 1, by))
                return
            if human:
                self._scroller.jump(slot + 1)
                return
            slot += by
        if by > 0:
            self._scroller.end(1)

    def target(self) -> Target | None:
        chosen = self._cursor.find_chosen()
        return None if chosen is None else target_of(self._canvas.model, chosen)

    def _move(self, by: int) -> None:
        """Move to the block above or below; without the cursor a row up or down."""
        if self._cursor.is_on:
            self._cursor.move(by)
            self._scroller.fit()
        else:
            self._scroller.row(by)

    def _end(self, by: int) -> None:
        """Move to the first or the last block; without the cursor to the first or the last row."""
        if self._cursor.is_on:
            self._cursor.end(by)
            self._scroller.fit()
        else:
            self._scroller.end(by)

    def _prompt(self, by: int) -> None:
        if self._cursor.is_on:
            self.go_prompt(by)

    def _toggle(self) -> None:
        """Open or fold the block under the cursor, or the lowest in sight that can be; sub-agents are gone to."""
        chosen = self._cursor.find_chosen()
        if chosen is not None and (agents := self._agents_in(chosen.part.key)):
            which = agents[0] if len(agents) == 1 else f"at {agents[0]}"
            self._view.call_later(self._view.run_action, f"screen.command({f'agents {which}'!r})")
            return
        key = self._canvas.last_foldable() if chosen is None else chosen.part.key
        if key and (chosen is None or chosen.part.foldable):
            self._fold(key)

    def _agents_in(self, key: str) -> Sequence[str]:
        kind, _, call_id = key.partition(":")
        view = self._canvas.model.calls.get(call_id) if kind == "call" else None
        return agents_of(view) if view is not None else ()

    def _fold_or_close_run(self) -> None:
        """Fold the block under the cursor; where it is folded, the run of reads it was opened from."""
        chosen, stack = self._cursor.find_chosen(), self._canvas.stack
        if chosen is None:
            return
        key = chosen.part.key
        if not (chosen.part.foldable and stack.is_open(key)):
            key = next(iter(find_opened_runs(stack.model, chosen.slot + 1, stack.opened)), "")
        if key:
            self._fold(key)

    def _ask(self, action: BlockAction) -> None:
        target = self.target()
        if target is None:
            return
        if action is BlockAction.OPEN_FILE and BlockAction.OPEN_IMAGE in target.actions:
            action = BlockAction.OPEN_IMAGE
        if action not in target.actions:
            self._want(signals.Remark(REFUSALS[action]))
        elif action is BlockAction.COPY:
            self._view.post_message(signals.SelectionCopied(self._view, target.text))
        else:
            self._want(signals.BlockRequest(action, target))

    def _want(self, request: signals.BlockSignal) -> None:
        self._view.post_message(signals.BlockWanted(self._view, request))
