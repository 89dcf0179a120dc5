"""The panels of the dock that are hidden at first: loaded and made behind the first frame, or with their first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.widget import Widget as _Base

    from phoenix_tui.widgets.asking_panel import AskingPanel
    from phoenix_tui.widgets.completion_popup import CompletionPopup
    from phoenix_tui.widgets.notices import NoticeBar
    from phoenix_tui.widgets.queue_panel import QueuePanel
else:
    _Base = object  # Textual inherits CSS along the first Widget base alone, as in `still.Still`


class LatePanels(_Base):
    """A part of the dock."""

    plain: bool
    notice: NoticeBar
    popup: CompletionPopup
    asking: AskingPanel | None = None
    """The panel of questions; None until it is made."""
    queued: QueuePanel | None = None
    """The panel of queued messages; likewise."""

    async def furnish(self) -> None:
        """Mount the widgets hidden at first: they would make the first frame 20 ms later."""
        await self.mount(self.notice, self.popup, before="#rule")

    async def furnish_panels(self) -> None:
        """Mount question and queue, whose modules were loaded meanwhile."""
        await self.mount(self.question, before=self.notice)
        await self.mount(self.queue, after=self.notice)

    @property
    def question(self) -> AskingPanel:
        """The panel of questions, made with the first use."""
        if self.asking is None:
            from phoenix_tui.widgets.asking_panel import AskingPanel  # noqa: PLC0415 - 4 ms before the first frame

            self.asking = AskingPanel(plain=self.plain)
        return self.asking

    @property
    def queue(self) -> QueuePanel:
        """The panel of queued messages, made with the first use."""
        if self.queued is None:
            from phoenix_tui.widgets.queue_panel import QueuePanel  # noqa: PLC0415 - as above

            self.queued = QueuePanel()
        return self.queued
