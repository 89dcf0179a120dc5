"""Model and effort of one run: those of a called command, else those of its conversation."""

from __future__ import annotations

from typing import Final

from engine.effort import Effort
from engine.executor.session import Session
from engine.machine.messages import Usage
from engine.ports import ProviderError
from tools.clean import clean_line
from tools.wording import one_line

UNKNOWN: Final = "{label} asks for the model '{model}', which is not known here; {ours} answers."
LONGEST_NAME: Final = 80


def run_model(session: Session) -> str:
    """Reference of the model that answers in the current run."""
    return session.run.caps.model or session.record.model


def run_effort(session: Session) -> Effort:
    """Effort of the current run."""
    wanted = session.run.caps.effort
    return session.record.effort if wanted is Effort.DEFAULT else wanted


def chosen_model(session: Session, wanted: str, label: str) -> tuple[str, str]:
    """The reference of a model that a command asks for, and a sentence where it is not known.

    A name without a provider is one of the conversation's own provider, and must have a known price: files written
    for other programs name models by words such as `haiku`.
    """
    if not wanted:
        return "", ""
    ours = session.record.model
    reference = wanted if "/" in wanted else f"{ours.partition('/')[0]}/{wanted}"
    try:
        session.ports.providers.resolve(reference)
        if "/" in wanted or session.ports.providers.price(reference, Usage()) is not None:
            return reference, ""
    except ProviderError:
        pass
    return "", UNKNOWN.format(label=label, model=one_line(clean_line(wanted), LONGEST_NAME), ours=ours)
