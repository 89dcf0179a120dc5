"""Getting started: the offers of an empty conversation, and installing a model on a yes."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec.structs import replace

from engine.executor.requests import EngineError
from phoenix_tui.features.service_interfaces import InstallProgress, Onboarding
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.widgets.status_line import StatusLine, TitleRow
from phoenix_tui.widgets.welcome_panel import EXAMPLES, Welcome, WelcomePanel
from tools.wording import byte_size

REPAINT_SECONDS: Final = 0.1
"""Shortest time between two paints of the progress bar."""


class Welcoming:
    """Fills the welcome panel; one installation at a time."""

    def __init__(
        self,
        panel: WelcomePanel,
        dock: Dock,
        status: StatusLine,
        onboarding: Onboarding,
        toasts: Notifier,
    ) -> None:
        self._panel = panel
        self._composer = dock.composer
        self._status = status
        self._onboarding = onboarding
        self._toasts = toasts
        self._facts = Welcome("")
        self._title: TitleRow | None = None
        """Title row above the panel."""
        self._task: asyncio.Task[str] | None = None
        self._painted = 0.0
        self._asked = False

    async def look(self) -> None:
        if self._asked:
            return
        self._asked = True
        offer, servers = await asyncio.gather(self._onboarding.local_offer(), self._onboarding.local_servers())
        self._facts = replace(self._facts, offer=offer, servers=servers)
        self._paint()

    def show(self, wanted: bool, title: TitleRow) -> None:
        """Show the panel for an empty conversation, or hide it; its examples can be inserted while it is visible."""
        self._title = title
        self._composer.keys.examples = EXAMPLES if wanted else ()
        if not wanted:
            self._panel.show(None, title)
            return
        self._facts = replace(self._facts, model=self._status.status.model)
        self._panel.show(self._facts, title)
        if self._facts.needs_model:
            self._panel.run_worker(self.look(), group="welcome")

    def _paint(self) -> None:
        if self._panel.display and self._title is not None:
            self._panel.show(self._facts, self._title)

    @property
    def can_install(self) -> bool:
        """True when Enter on an empty line asks about the download: the offer is visible."""
        facts = self._facts
        offered = facts.offer is not None and not facts.offer.refusal
        return self._panel.display and facts.needs_model and offered and self._task is None

    @property
    def install_question(self) -> str:
        offer = self._facts.offer
        if offer is None:
            return "Install a model?"
        size, memory = byte_size(offer.download_bytes), byte_size(offer.memory_bytes)
        toy = f"It needs {memory} of memory, and is for trying Phoenix, not for work."
        return f"Download {offer.name}, {size}, from {offer.source}? {toy}"

    async def install(self) -> None:
        """Install the offered model and use it; Esc stops it."""
        self._facts = replace(self._facts, trouble="")
        self._show(InstallProgress(0, 0, "Starting"))
        self._task = asyncio.create_task(self._onboarding.install(self._progress))
        trouble, reference = "", ""
        try:
            reference = await asyncio.shield(self._task)
        except EngineError as error:
            trouble = str(error)
        except asyncio.CancelledError:
            if not self._task.cancelled():
                self._task.cancel()
                raise
            trouble = "The download was stopped. The next one resumes it."
        finally:
            self._task = None
            self._facts = replace(self._facts, installing=None, trouble=trouble)
            self._status.background_work = ""
        if reference:
            self._facts = replace(self._facts, offer=None)
            self._panel.post_message(WelcomePanel.Installed(reference))
        elif not self._panel.display:
            self._toasts.tell(trouble, bad=True)
        self._paint()

    @property
    def is_installing(self) -> bool:
        return self._panel.display and self._task is not None and not self._task.done()

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _progress(self, progress: InstallProgress) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._painted >= REPAINT_SECONDS or progress.done == progress.total:
            self._painted = now
            self._show(progress)

    def _show(self, progress: InstallProgress) -> None:
        """Show the progress in the panel, and in the status line once a conversation has replaced the panel."""
        self._facts = replace(self._facts, installing=progress)
        share = f" {100 * progress.done // progress.total}%" if progress.total else "…"
        self._status.background_work = f"installing a model{share}"
        self._paint()
