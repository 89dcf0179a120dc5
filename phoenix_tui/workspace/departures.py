"""Drafts that left the composer as other conversations were asked for, until each of these comes into view."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from engine.records import Attachment
from phoenix_tui.features.draft_codec import Unsent, ahead_of, joined, parsed
from phoenix_tui.widgets.dock import Dock


@dataclass(slots=True, eq=False)
class Departure:
    """Content of the composer when another conversation was asked for: the draft of the one that is in view by then."""

    unsent: Unsent | None
    """None while nothing was in view yet: what is typed early is for the first conversation."""
    images: tuple[Attachment, ...]
    changed: bool
    """True when some of it is not stored."""

    @property
    def draft(self) -> str:
        """Stored form of the draft."""
        unsent = self.unsent or Unsent("")
        return joined(unsent.text, [image.id for image in self.images], unsent.folds)


class Departures:
    """Departures that wait for their turn, the oldest first; what is typed behind the newest is in the composer.

    Keys may ask for several conversations while the disk is slow: each draft still gets to the conversation that was
    asked for before it was typed.
    """

    def __init__(self, dock: Dock) -> None:
        self._dock = dock
        self._waiting: deque[Departure] = deque()
        self.count = 0
        """Number of them since the start: what a key began belongs to the same message while it is the same."""
        self._under_way = False
        """True while the conversation of a departure comes into view."""

    @property
    def are_waiting(self) -> bool:
        """True while the composer belongs to a conversation that does not come into view yet."""
        return bool(self._waiting)

    def take(self, *, changed: bool) -> Departure:
        """Take the draft out of the composer: what is typed from now on is for the conversation that comes."""
        dock = self._dock
        self.count += 1
        is_early = not dock.is_loaded and not self._waiting and not self._under_way
        if is_early:
            departure = Departure(None, (), changed=False)
        else:
            unsent = Unsent(dock.composer.content, (), tuple(dock.composer.folds))
            departure = Departure(unsent, dock.chips.images, changed)
            dock.chips.images = ()
            dock.expect()
        self._waiting.append(departure)
        return departure

    def begin(self, departure: Departure) -> None:
        """Note that the turn of a departure has come."""
        self._waiting.remove(departure)
        self._under_way = True

    def end(self) -> None:
        """Let the composer be used where no conversation came, and none will."""
        self._under_way = False
        if not self._waiting and not self._dock.is_loaded:
            self._dock.load("")

    def cancel(self, departure: Departure) -> None:
        """Return the draft of one whose turn will not come; nothing happens once it has come."""
        if departure not in self._waiting:
            return
        place = self._waiting.index(departure)
        self._waiting.remove(departure)
        if departure.unsent is not None:
            self._give(departure.unsent, departure.images, place)

    def give(self, unsent: Unsent, images: Sequence[Attachment] = ()) -> None:
        """Show the draft of the conversation that came, before what was typed for it; or keep it, as the next comes."""
        self._give(unsent, images, 0)

    def give_back(self, unsent: Unsent, images: Sequence[Attachment]) -> None:
        """Put a message that was not sent before the draft of the conversation that will be left next."""
        departure = self._waiting[0]
        since = departure.unsent or Unsent("")
        departure.unsent = parsed(ahead_of(unsent, joined(since.text, (), since.folds)))
        departure.images, departure.changed = (*images, *departure.images), True

    def _give(self, unsent: Unsent, images: Sequence[Attachment], place: int) -> None:
        if place >= len(self._waiting):
            chips = self._dock.chips
            self._dock.load(unsent.text, unsent.folds)
            chips.images = (*images, *chips.images)
            return
        departure = self._waiting[place]
        since = departure.unsent or Unsent("")
        folds = (*unsent.folds, *((start + len(unsent.text), length) for start, length in since.folds))
        departure.unsent = Unsent(unsent.text + since.text, (), folds)
        departure.images = (*images, *departure.images)
        departure.changed = True
