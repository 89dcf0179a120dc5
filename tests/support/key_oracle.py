"""Finds out where the words of a script of keys are: each in one text, those of one place in one conversation."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from tests.support.key_scripts import OPENERS, Script


@dataclass(slots=True)
class Texts:
    """Content of a Phoenix after a script: texts that were written, and the conversation of each."""

    of: dict[str, list[str]] = field(default_factory=lambda: defaultdict[str, list[str]](list))
    """Draft, own messages and queue of each conversation, by its id."""
    titles: dict[str, str] = field(default_factory=dict[str, str])
    """Title of each conversation, a later one of the user's included."""
    loose: list[str] = field(default_factory=list[str])
    """Drafts put aside: texts of no conversation."""
    copies: str = ""
    """Prompt history: copies of what is elsewhere."""
    images: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Conversations that have each image, by its number."""


def faults(script: Script, texts: Texts) -> list[str]:
    """Each word that is lost, doubled, cut or in another conversation than meant, in a sentence."""
    homes: dict[str, set[str]] = defaultdict(set)
    found = [fault for run, place in script.meant if (fault := _fault_of(run, script, texts, homes[place]))]
    homes.pop("", None)
    found += _misplaced(texts, homes)
    for number, place in enumerate(script.images):
        owners = texts.images.get(str(number), [])
        if len(owners) != 1 or (homes.get(place) and owners[0] not in homes[place]):
            found.append(f"image {number} for {place} is in {[texts.titles.get(one) for one in owners]}")
    return found + [f"out of order: {text}" for text in _lines_of(texts) if not (script.repeats or _is_ordered(text))]


def _fault_of(run: str, script: Script, texts: Texts, homes: set[str]) -> str:
    """Sentence about one run of words, empty where it is in one text; adds the conversation of that to `homes`."""
    owners = [owner for owner, all_of in texts.of.items() for text in all_of if _has(text, run)]
    loose = [text for text in texts.loose if _has(text, run)]
    titled = [owner for owner, title in texts.titles.items() if _has(title, run)]
    if not owners and not loose:
        homes.update(titled)
        where = "only in the history" if _has(texts.copies, run) else "lost or cut"
        return "" if titled else f"{where}: {run}"
    homes.update(owners[:1])
    count = len(owners) + len(loose)
    return f"in {count} texts: {run}" if count > 1 and not script.repeats else ""


def _misplaced(texts: Texts, homes: dict[str, set[str]]) -> list[str]:
    found: list[str] = []
    for place, owners in homes.items():
        titles = sorted(texts.titles[one] for one in owners)
        if len(owners) > 1 or (place in OPENERS and owners and not titles[0].startswith(place)):
            found.append(f"words for {place} are in {titles}")
    for owner, title in texts.titles.items():
        places = sorted(place for place, owners in homes.items() if owner in owners)
        if len(places) > 1:
            found.append(f"words for {places} are in {title!r}")
    return found


def _lines_of(texts: Texts) -> list[str]:
    """Every line: a message that was refused is one of its own, before those written since."""
    return [line for all_of in texts.of.values() for text in all_of for line in text.split("\n")]


def _is_ordered(text: str) -> bool:
    """True where the words have the order of typing."""
    numbers = [int(number) for number in re.findall(r"\bw(\d+)[a-h]+z", text)]
    return numbers == sorted(numbers)


def _has(text: str, run: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(run)}(?![a-z0-9])", " ".join(text.split())) is not None
