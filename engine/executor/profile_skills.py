"""Skills that a profile brings along: their texts stand in the system prompt, since a sub-agent loads none itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.context.prompt_section import BOTH, PromptSection, section

if TYPE_CHECKING:
    from engine.executor.session import Session
    from engine.ports.invocables import Invocable

HEADING: Final = "Skills of this agent"
LEAD: Final = "These skills are loaded; follow them where they fit the task."
MOST_CHARACTERS: Final = 60_000
"""Characters of all their texts; what does not fit is left out whole."""


def profile_skills(session: Session) -> tuple[PromptSection, ...]:
    """One section with the skills that the profile names, as far as a model may load them; none where it names none.

    A skill with shell lines is left out: they run only where someone may be asked about them.
    """
    profile, invocables = session.profile, session.ports.invocables
    if profile is None or not profile.skills or invocables is None:
        return ()
    texts, room = list[str](), MOST_CHARACTERS
    for text in _texts(session):
        if len(text) <= room:
            texts.append(text)
            room -= len(text)
    if not texts:
        return ()
    return tuple(section(HEADING, "\n\n".join((LEAD, *texts)), f"skills of {profile.source}", BOTH))


def _texts(session: Session) -> Iterator[str]:
    assert session.profile is not None, "the caller has looked"
    assert session.ports.invocables is not None, "the caller has looked"
    catalogue, seen = session.ports.invocables.catalogue(session.record.cwd), set[str]()
    for name in session.profile.skills:
        skill = catalogue.skill(name)
        if skill is not None and skill.for_models and skill.name not in seen:
            seen.add(skill.name)
            yield from _text(session, skill)


def _text(session: Session, skill: Invocable) -> Iterator[str]:
    from engine.extensions.bodies import body_of, wrapped  # noqa: PLC0415 - only where a profile names skills

    body = body_of(skill, "", session.record.id)
    if not body.lines:
        yield wrapped(body, "".join(part for part in body.parts if isinstance(part, str)))
