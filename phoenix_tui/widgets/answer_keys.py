"""Letters on an empty line, and Enter behind a text, as answers to the open question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from textual import events

from phoenix_tui.keys.active_keys import meanings
from tools.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from textual.widget import Widget

    from engine.updates import Question

TYPING_PAUSE: Final = 0.5
"""Seconds without typing before a letter may answer a question (docs/decisions/looks.md)."""
ANSWERS: Final = {
    "answer_once": "y",
    "answer_conversation": "s",
    "answer_always": "a",
    "answer_no": "n",
    "answer_reason": "r",
    **{f"answer_{number}": str(number) for number in range(1, 6)},
}
PLAN_ANSWERS: Final = {**ANSWERS, "answer_edit": "e", "answer_6": "6"}
"""The same for a plan, which can be changed first."""
ASK_ANSWERS: Final = {
    **{f"answer_{number}": str(number) for number in range(1, 6)},
    "answer_no": "n",
    "answer_reason": "r",
    "ask_other": "o",
    "ask_before": "before",
    "ask_after": "after",
    "ask_send": "send",
}
"""Keys that answer questions of the model."""
LEFT_OPEN_ANSWERS: Final = {name: letter for name, letter in ASK_ANSWERS.items() if name != "answer_reason"}
"""The same where a text is a message as usual: the run of the questions has ended, or only options answer them."""
_AGREES: Final = re.compile(r"(?:yes|ok|okay|sure|do it|go ahead)(?![\w-])", re.IGNORECASE)
"""Beginning of a text that Enter takes as a yes."""
_TAKES_BACK: Final = re.compile(r"\b(?:no|not|never|don.?t|do not|stop|wait|cancel)\b", re.IGNORECASE)
"""Words behind it that make it none."""
ENTER_PAUSE: Final = 1.0
"""Seconds without any key before Enter on an empty text gives the lit answer: it is pressed for much else."""
NEVER: Final = float("-inf")
AGAIN: Final = 10.0
"""Seconds within which a second Enter makes an older text the reason of a no."""
ALWAYS_KEY: Final = "a"
ALWAYS: Final = "always"
"""The answer of that key behind a message that was refused while the agent works: Enter queues from now on."""


class ComposerHost:
    """The widget around a composer, with the question and the widgets above and below; here there is none of them."""

    def answer(self, letter: str) -> bool:
        """Answer the open question, at once: it may open a line that the next key is meant for. False: it does not."""
        return False

    def take_lit(self) -> bool:
        """Give the answer that Enter gives; False where there is none."""
        return False

    def light(self, letter: str) -> None:
        """Make the answer of a letter the one that Enter gives."""

    def refuse(self, reason: str) -> bool:
        """Say no with this reason; False without a question that takes one."""
        return False

    def above(self) -> Widget | None:
        """The widget that Up on the first row gives the keys to."""
        return None

    def below(self) -> Widget | None:
        """The widget that Down on an empty line gives the keys to."""
        return None

    def catch_up(self) -> None:
        """Offer completions for the text as it is now: keys of one read come ahead of the messages of change."""

    def move_completion(self, by: int) -> None:
        """Choose another one of the open completions."""

    async def take_completion(self, *, send: bool) -> None:
        """Put the chosen completion into the text, or with `send` run it; done when the next key may be read."""


def letter_of_text(text: str) -> str:
    """The letter of the answer that a text gives with Enter: a yes by its first words, else a no."""
    text = text.strip()
    if text.lower() == "y" or (_AGREES.match(text) and not _TAKES_BACK.search(words_after_yes(text))):
        return "y"
    return "n" if text.lower() in {"n", "no"} else "r"


def words_after_yes(text: str) -> str:
    """The words behind those that say yes."""
    found = _AGREES.match(text.strip())
    return text.strip()[found.end() :].strip(" ,.;:!\n") if found is not None else ""


class Entered(Enum):
    """Action of Enter behind a text while a question is open."""

    MESSAGE = auto()
    """The usual action."""
    ANSWER = auto()
    """The text answered, or is the reason of a no."""
    AGREED = auto()
    """The text answered yes, and the running turn reads the words behind it."""
    KEPT = auto()
    """No action: the answer does not count yet, and the text stays."""
    HELD = auto()
    """No action: the text was begun before the question."""


class StrayLetter(NamedTuple):
    """An answering letter that became text while a question was open."""

    letter: str
    since: float
    """Time at which the question appeared."""
    typed_at: float

    @property
    def counts(self) -> bool:
        """False in the first moments of a question, where a letter was meant for something else."""
        return self.typed_at - self.since >= TYPING_PAUSE


class Answering:
    """A letter on an empty line, or Enter behind a text, as the answer to a question: never during typing."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self.since: float | None = None
        """Monotonic time at which the open question appeared."""
        self.letters: Mapping[str, str] = ANSWERS
        """Actions whose keys answer, and the letters of the answers."""
        self.host = ComposerHost()
        self.typed_at = 0.0
        self.settled: events.Key | None = None
        """The newest letter behind which nothing was typed (`key_order.py`): no other one answers."""
        self._begun = NEVER
        """Time at which the text in the box was begun by hand; a draft or an older prompt counts as begun long ago."""
        self.entered_at = NEVER
        """Time of the last Enter."""
        self._tried = NEVER
        """Time of Enter on a text that was begun before the question."""
        self._offered = NEVER
        """Time at which `ALWAYS_KEY` was offered; typing ends the offer."""

    def note_typing(self) -> None:
        self.typed_at, self._offered = self.clock.monotonic(), NEVER

    def offer_always(self, wanted: bool) -> None:
        """Let a lone `ALWAYS_KEY` behind the refused text queue messages always, or no longer."""
        self._offered = self.clock.monotonic() if wanted else NEVER

    def begin(self, *, by_hand: bool = True) -> None:
        """Note that the first letter of a text is written, or that another text took its place."""
        self._begun = self.clock.monotonic() if by_hand else NEVER

    def wants(self, key: str, *, is_empty: bool) -> bool:
        return self._wants_always(key) or self._wants_answer(key, is_empty=is_empty)

    def _wants_always(self, key: str) -> bool:
        offered = self._offered
        return key == ALWAYS_KEY and offered > NEVER and self.clock.monotonic() - offered >= TYPING_PAUSE

    def _wants_answer(self, key: str, *, is_empty: bool) -> bool:
        rested = self.since is not None and self.clock.monotonic() - max(self.since, self.typed_at) >= TYPING_PAUSE
        return is_empty and rested and key in meanings(self.letters)

    def letter_of(self, key: str, *, writes: bool, is_empty: bool) -> str:
        """The answer of a key; empty where it is the text's. `writes`: it is a letter; `is_empty`: the text is."""
        if self._wants_always(key):
            return ALWAYS
        letter = meanings(self.letters).get(key, "") if self._wants_answer(key, is_empty=is_empty) else ""
        if writes and (not letter or "answer_once" in self.letters):
            self.typed_at = self.clock.monotonic()  # a form takes one key after the other
        return letter

    def note_stray(self, key: str) -> StrayLetter | None:
        """The answer that the first letter of a text may have been; None where it is none."""
        letter = meanings(self.letters).get(key, "") if "answer_once" in self.letters else ""
        return StrayLetter(letter, self.since, self.typed_at) if letter and self.since is not None else None

    def try_again(self, stray: StrayLetter) -> bool:
        """Give the answer of a letter behind which nothing was typed, or light it if it came too early; False where
        another question is open, or more was typed.
        """
        if (self.since, self.typed_at) != (stray.since, stray.typed_at):
            return False
        if stray.counts:
            self.host.answer(stray.letter)
        else:
            self.host.light(stray.letter)
        return True

    @property
    def is_own_text(self) -> bool:
        """True when the text was begun while the question was visible, and so may be meant for it."""
        return self.since is not None and self._begun - self.since >= TYPING_PAUSE

    def enter(self, text: str) -> Entered:
        """Enter behind a text that is neither command nor empty."""
        if self.since is None or "answer_reason" not in self.letters:
            return Entered.MESSAGE
        now, tried = self.clock.monotonic(), self._tried
        self._tried = now  # each press: a held key never becomes the second one
        if self.is_own_text or TYPING_PAUSE <= now - tried < AGAIN:
            self._tried = NEVER
            letter = letter_of_text(text) if "answer_once" in self.letters else "r"
            if letter == "r":
                return Entered.ANSWER if self.host.refuse(text.strip()) else Entered.MESSAGE
            if not self.host.answer(letter):
                return Entered.KEPT
            return Entered.AGREED if letter == "y" and words_after_yes(text) else Entered.ANSWER
        return Entered.HELD

    def enter_nothing(self) -> bool:
        """Enter on an empty text: the lit answer, once nothing was typed for a while; False where it is no answer."""
        if self.since is None or "answer_once" not in self.letters:
            return False
        rested = self.clock.monotonic() - max(self.since, self.typed_at, self.entered_at) >= ENTER_PAUSE
        return self.host.take_lit() if rested else True

    def note_enter(self) -> None:
        """Note Enter, so that one held or pressed twice gives no answer."""
        self.entered_at = self.clock.monotonic()


def answers_to(question: Question | None) -> Mapping[str, str]:
    """Actions whose keys answer this question, and the letters of the answers."""
    if question is not None and (asked := question.request.questions):
        return LEFT_OPEN_ANSWERS if question.left_open or asked[0].only_options else ASK_ANSWERS
    return PLAN_ANSWERS if question is not None and question.request.plan else ANSWERS
