"""The model of the conversation in view and of new ones: its list with a filter, the choice, its effort, the cost of a
change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.machine.states import is_busy
from engine.ports import ConversationChanges, ModelInfo, StorageError
from engine.records import ConversationRecord
from engine.run_options import LEVELS, Effort, nearest
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.models.offers import Preferred, ProviderOffer, ProviderState, can_be_kept
from phoenix_tui.text.labels import money, short_model, tokens
from phoenix_tui.text.model_text import facts_line, filter_words
from tools.wording import pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation

MEANINGS: Final[dict[Effort, str]] = {
    Effort.DEFAULT: "the provider decides",
    Effort.OFF: "no reasoning: fast and cheap",
    Effort.LOW: "little reasoning",
    Effort.MEDIUM: "a balance of speed and care",
    Effort.HIGH: "much reasoning: slower, costs more",
    Effort.MAX: "as much as the model can",
}
STEPS: Final = {"higher": 1, "lower": -1}
NO_LEVELS: Final = "{model} has no levels of effort. /model chooses another model."
LATER: Final = " It counts from the next run on."
CLAUDE: Final = "anthropic/"
READ_ANEW: Final = " The next request reads {count} tokens anew: the cache is of one effort."


async def choose_effort(front: FrontEnd, word: str) -> None:
    """Use this effort or the next one, or ask for one that the model accepts."""
    known = front.services.system.efforts(front.model)
    if word and word not in {*Effort, *STEPS}:
        front.tell(f"Efforts: {', '.join(Effort)}; or {' or '.join(STEPS)}.", bad=True)
        return
    if word not in set(Effort) and not known and front.effort is Effort.DEFAULT:
        front.tell(NO_LEVELS.format(model=short_model(front.model)))
        return
    offered = [level for level in LEVELS if level in {Effort.DEFAULT, front.effort, *known}]
    if word in STEPS:
        word = offered[min(max(offered.index(front.effort) + STEPS[word], 0), len(offered) - 1)].value
    if not word:
        options = [Option(level.value, level.value, (MEANINGS[level],)) for level in offered]
        word = await front.pick(f"Effort of {short_model(front.model)}", options, current=front.effort.value)
    if word in set(Effort):
        await _use_effort(front, Effort(word), known)


async def _use_effort(front: FrontEnd, effort: Effort, known: Sequence[Effort]) -> None:
    """Use it here and for new conversations of this session."""
    front.prefer(launch=replace(front.launch, effort=effort))
    running, anew = False, ""
    if front.conversation is not None:
        running, anew = is_busy(front.conversation.state), _read_anew(front.conversation.record, effort)
        await front.conversation.change(ConversationChanges(effort=effort))
    said = _describe_effort(short_model(front.model), effort, known) + (LATER if running else "") + anew
    if running or anew or effort not in {Effort.DEFAULT, *known}:
        front.tell(said)
    else:
        front.confirm_change(said)


def _read_anew(record: ConversationRecord, effort: Effort) -> str:
    """The cost of a change to the prompt cache, which Claude keeps for one effort; empty where there is none."""
    if effort is record.effort or not record.context_tokens or not record.model.startswith(CLAUDE):
        return ""
    return READ_ANEW.format(count=tokens(record.context_tokens))


def _describe_effort(model: str, effort: Effort, known: Sequence[Effort]) -> str:
    if effort is Effort.DEFAULT or effort in known:
        return f"Effort {effort.value}: {MEANINGS[effort]}."
    if not known:
        return f"Effort {effort.value}: {model} has no levels and is sent none."
    return f"Effort {effort.value}: {model} is sent {nearest(effort, known).value}, its nearest."


PER_MILLION = 1_000_000


async def change_sentence(front: FrontEnd, conversation: Conversation) -> str:
    """Costs of the next request to the model that is in use now; empty where nothing was sent yet."""
    record = conversation.record
    info = await front.services.models.facts(record.model)
    if info is None or not record.message_count or not record.context_tokens:
        return ""
    images = 0
    if info.vision is False:
        with suppress(StorageError):  # then images are not named
            images = (await conversation.context.report()).images
    words = change_text(info, record.context_tokens, images)
    return f"{short_model(record.model)}: {words[0].lower()}{words[1:]}"


def change_text(info: ModelInfo, context: int, images: int = 0) -> str:
    """Sentences about a request of `context` tokens to a model that has none of them in its cache.

    `images` is their number where the model cannot see them.
    """
    cost = "" if info.price_in is None else money(context * info.price_in / PER_MILLION)
    price = f", about {cost}" if cost else ", at an unknown price" if info.price_in is None else ""
    sentences = [f"Its cache lacks this conversation: it reads {tokens(context)} tokens anew{price}."]
    if 0 < info.context_window < context:
        sentences.append(f"Its window is smaller ({tokens(info.context_window)}): /compact first.")
    if images:
        sentences.append(f"It cannot see images: {images} here {'is' if images == 1 else 'are'} left out once refused.")
    return " ".join(sentences)


FAVOURITES: Final = "Favourites"
RECENT: Final = "Recent"
CLOSED: Final = {ProviderState.NO_KEY: "Without a key", ProviderState.UNREACHABLE: "Unreachable"}
"""Headings of providers without models."""
EMPTY: Final = "Without models"
ASKING: Final = "Asking for models …"


class ModelRow(Struct, frozen=True):
    """A model under a heading; or a provider without models, which has an empty `key` and its words in `name`."""

    section: str
    key: str
    """Reference of the model."""
    name: str
    """Name in the list: without its provider below the heading of that."""
    found: str
    """Text in lower case that the filter searches."""
    info: ModelInfo | None = None
    """Known facts about the model."""
    offer: ProviderOffer | None = None
    """The provider of a row without a model."""


def provider_rows(offer: ProviderOffer) -> list[ModelRow]:
    """Rows of one provider; none for one that the user did not name and that has no models."""
    if not offer.models:
        return [_make_closed_row(offer)] if offer.is_expected else []
    heading = " · ".join(filter(None, (offer.name, offer.words)))
    return [_row(heading, one.reference, one.name, one) for one in offer.models]


def list_preferred(preferred: Preferred, now: str, known: Mapping[str, ModelInfo]) -> list[ModelRow]:
    """Favourites, then the model in use and those used before; one that no list has stays without facts."""
    favourites = dict.fromkeys(preferred.favourites)
    recent = (one for one in dict.fromkeys((now, *preferred.recent)) if one and one not in favourites)
    groups: tuple[tuple[str, Iterable[str]], ...] = ((FAVOURITES, favourites), (RECENT, recent))
    return [_row(section, one, one, known.get(one)) for section, references in groups for one in references]


def all_rows(groups: Iterable[Sequence[ModelRow]], preferred: Sequence[ModelRow]) -> list[ModelRow]:
    """The whole list from the rows of each provider: providers without models come last, by their state."""
    whole, closed = list(preferred), list[ModelRow]()
    for rows in groups:
        (closed if rows and rows[0].offer is not None else whole).extend(rows)
    order = {heading: place for place, heading in enumerate((ASKING, EMPTY, *reversed(CLOSED.values())))}
    return whole + sorted(closed, key=lambda row: order[row.section])


def narrow_rows(rows: Sequence[ModelRow], query: str) -> list[ModelRow]:
    """Rows that hold every word of the query, each model at its first place; all rows without a word."""
    words = query.lower().split()
    if not words:
        return list(rows)
    first, *others = words
    found = [row for row in rows if first in row.found]
    for word in others:
        found = [row for row in found if word in row.found]
    return once(found)


def once(rows: Sequence[ModelRow]) -> list[ModelRow]:
    """Each model at its first place alone."""
    found: dict[str, ModelRow] = {}
    for row in rows:
        found.setdefault(row.key or row.name, row)
    return list(found.values())


def _row(section: str, key: str, name: str, info: ModelInfo | None) -> ModelRow:
    words = filter_words(info) if info is not None else ""
    return ModelRow(section, key, name, f"{key} {words}".lower(), info)


def _make_closed_row(offer: ProviderOffer) -> ModelRow:
    section = CLOSED.get(offer.state) or (ASKING if offer.state is ProviderState.ASKING else EMPTY)
    said = f"{offer.name}: {offer.words}" if offer.words else offer.name
    return ModelRow(section, "", said, f"{said} {offer.state.value}".lower(), offer=offer)


class OfferedModels:
    """Rows, the filter and the chosen row; whoever shows it draws it."""

    def __init__(self, offers: Sequence[ProviderOffer], front: FrontEnd, query: str = "") -> None:
        self.query = query
        self.now = front.model
        """Reference of the model in use."""
        self.rows: Sequence[ModelRow] = ()
        self.found: Sequence[ModelRow] = ()
        self.chosen = 0
        self._models = front.services.models
        self._groups: dict[str, list[ModelRow]] = {}
        self._infos: dict[str, dict[str, ModelInfo]] = {}
        self.preferred = self._models.preferred.read()
        for offer in offers:
            self._take(offer)
        self._renew()
        self.chosen = self._place_of(self.now) or 0

    @property
    def row(self) -> ModelRow | None:
        """The chosen row."""
        return self.found[self.chosen] if self.chosen < len(self.found) else None

    def move(self, by: int) -> None:
        """Choose another row."""
        self.chosen = max(0, min(self.chosen + by, len(self.found) - 1))

    def narrow(self, query: str) -> None:
        """Show rows with these words, the first one chosen; without words all, with the same row chosen."""
        before = self.row
        self.query = query
        self.found = narrow_rows(self.rows, query)
        self.chosen = 0
        if not query.strip() and before is not None:
            self.chosen = self._place_of(before.key or before.name, before.section) or 0

    def renew(self) -> None:
        """Read the favourites again; the chosen row stays chosen."""
        self.preferred = self._models.preferred.read()
        self._renew()

    async def refresh(self, *, again: bool = False) -> AsyncIterator[None]:
        """Ask every provider; yields with each one that answered. `again` asks those too that answered today."""
        async with aclosing(self._models.ask_all(refresh=again)) as answers:
            async for offer in answers:
                self._take(offer)
                self._renew()
                yield

    def _take(self, offer: ProviderOffer) -> None:
        self._groups[offer.name] = provider_rows(offer)
        self._infos[offer.name] = {one.reference: one for one in offer.models}

    def _renew(self) -> None:
        before = self.row
        wanted = (*self.preferred.favourites, *self.preferred.recent, self.now)
        known = {one: info for one in wanted if (info := self._info(one)) is not None}
        self.rows = all_rows(self._groups.values(), list_preferred(self.preferred, self.now, known))
        self.found = narrow_rows(self.rows, self.query)
        place = self._place_of(before.key or before.name, before.section) if before is not None else None
        self.chosen = max(0, min(self.chosen, len(self.found) - 1)) if place is None else place

    def _info(self, reference: str) -> ModelInfo | None:
        return self._infos.get(reference.partition("/")[0], {}).get(reference)

    def _place_of(self, key: str, section: str = "") -> int | None:
        """Place of a row: below the same heading, else anywhere; None where there is none."""
        places = [place for place, row in enumerate(self.found) if (row.key or row.name) == key]
        same = [place for place in places if self.found[place].section == section]
        return next(iter(same or places), None)


DEFAULT: Final = "default"
BEFORE: Final = "-"
"""Argument of /model for the model used before this one."""
NONE_BEFORE: Final = "No other model was chosen before. /model lists all."
CANNOT_MARK: Final = "A model with such a name cannot be a favourite."


async def choose_model(front: FrontEnd, words: str) -> None:
    """Use or mark the model that is named, else ask for one of a numbered list, of those with these words."""
    if await do_named(front, words):
        return
    models = OfferedModels(await front.services.models.list_known(), front, words)
    async for _ in models.refresh():
        pass  # the list is read out once
    models.narrow(words)
    if not models.found:
        front.tell(f"No model has “{words}”. /model lists all; /model PROVIDER/MODEL uses one as typed.", bad=True)
        return
    options = [
        Option(
            one.key,
            f"{one.key} *" if one.key in models.preferred.favourites else one.key,
            facts_line(one.info) if one.info is not None else ("not in a list",),
        )
        for one in once(models.found)
        if one.key
    ]
    if len(options) > front.most_options:
        front.tell(f"The first {front.most_options} of {pluralize(len(options), 'model')}; /model WORD finds others.")
    _tell_closed(front, models)
    shown = options[: front.most_options]
    if shown and (reference := await front.pick("Model of this conversation", shown, current=front.model)):
        await use_model(front, reference)


async def do_named(front: FrontEnd, words: str) -> bool:
    """Do what an argument of /model says by itself; False where it asks for a list."""
    reference, _, action = words.strip().partition(" ")
    if words.strip() == BEFORE:
        await use_model_before(front)
        return True
    provider, slash, name = reference.partition("/")
    if not (slash and name and front.services.models.has_provider(provider)):
        return False
    match action.strip():
        case "":
            await use_model(front, reference)
        case "default":
            await use_by_default(front, reference)
        case "*":
            await tell_mark(front, reference)
        case _:
            return False
    return True


async def use_model(front: FrontEnd, reference: str) -> None:
    """Use this model here and for new conversations of this session; says what the change costs."""
    before, conversation = front.model, front.conversation
    front.prefer(model=reference)
    await _remember(front, reference, before)
    if reference.startswith("local/"):
        front.tell("This is a very small local model: for trying Phoenix, not for work.")
    if conversation is not None:
        await conversation.change(ConversationChanges(model=reference))
        if reference != before and (said := await change_sentence(front, conversation)):
            front.tell(said)
    front.confirm_change(f"Model {reference}.")


async def use_by_default(front: FrontEnd, reference: str) -> None:
    """Use it here, and keep it as the model of new conversations."""
    await use_model(front, reference)
    try:
        front.services.settings.save("model", reference)
    except EngineError as error:
        front.tell(str(error), bad=True)
    else:
        front.tell(f"New conversations use {reference}.")


async def use_with_effort(front: FrontEnd, reference: str) -> None:
    """Use it here, then choose its effort."""
    if reference != front.model:
        await use_model(front, reference)
    await choose_effort(front, "")


async def use_model_before(front: FrontEnd) -> None:
    """Go back to the model that was chosen before the present one; a second time returns."""
    recent = front.services.models.preferred.read().recent
    before = next((one for one in recent if one != front.model), "")
    if before:
        await use_model(front, before)
    else:
        front.tell(NONE_BEFORE)


async def tell_mark(front: FrontEnd, reference: str) -> None:
    """Mark a model as a favourite, or take the mark away, and say so."""
    is_marked, why = await mark(front, reference)
    done = "is a favourite now" if is_marked else "is no favourite any more"
    front.tell(why or f"{reference} {done}.", bad=bool(why))


async def mark(front: FrontEnd, reference: str) -> tuple[bool, str]:
    """Mark a model or take the mark away: True when it is a favourite now, and the reason where it cannot be kept."""
    if not can_be_kept(reference):
        return False, CANNOT_MARK
    try:
        return await asyncio.to_thread(front.services.models.preferred.toggle, reference), ""
    except OSError as error:
        return False, f"Favourites cannot be saved: {error.strerror}."


async def _remember(front: FrontEnd, reference: str, before: str) -> None:
    """Keep the choice for lists, and consent to a server of this machine."""
    try:
        await front.services.onboarding.accept_server(reference)
    except EngineError as error:
        front.tell(str(error), bad=True)
    try:
        await asyncio.to_thread(front.services.models.preferred.note_use, reference, before)
    except OSError as error:
        front.tell(f"Recent models cannot be saved: {error.strerror}.", bad=True)


def _tell_closed(front: FrontEnd, models: OfferedModels) -> None:
    """Say of providers without models why they have none; without words only how many lack a key."""
    closed = [row.offer for row in models.found if row.offer is not None]
    keyless = [one for one in closed if one.state is ProviderState.NO_KEY]
    for one in closed:
        if models.query.strip() or one not in keyless:
            front.tell(f"{one.name}: {one.state.value}. {one.words}".strip())
    if keyless and not models.query.strip():
        front.tell(f"{pluralize(len(keyless), 'provider')} without a key: /model PROVIDER names its variable.")
