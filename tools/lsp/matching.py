"""New problems: those after an edit without those before it, on whatever line they are by now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tools.lsp.problems import ServerProblem


def new_problems(
    before: Sequence[ServerProblem], after: Sequence[ServerProblem], old: str, new: str
) -> list[ServerProblem]:
    """Problems of `after` that were not there before; `old` and `new` are the texts.

    The same problem has the same severity, source, code and message. Where more of a kind are there than before, those
    that an edit did not touch are the old ones.
    """
    known = Counter(problem.kind for problem in before)
    stays = _untouched(before, old, new)
    touched: list[ServerProblem] = []
    for problem in after:
        if stays[place := (problem.line, problem.kind)] > 0:
            stays[place] -= 1
            known[problem.kind] -= 1
        else:
            touched.append(problem)
    found: list[ServerProblem] = []
    for problem in touched:
        if known[problem.kind] > 0:
            known[problem.kind] -= 1
        else:
            found.append(problem)
    return sorted(found, key=lambda one: (one.line, one.character))


def _untouched(before: Sequence[ServerProblem], old: str, new: str) -> Counter[tuple[int, tuple[int, str, str, str]]]:
    """Earlier problems in lines that both texts begin or end with, by their line in the new text."""
    one, other = old.split("\n"), new.split("\n")
    head = _equal(one, other)
    tail = min(_equal(one[::-1], other[::-1]), min(len(one), len(other)) - head)
    moved = len(other) - len(one)
    found: Counter[tuple[int, tuple[int, str, str, str]]] = Counter()
    for problem in before:
        if problem.line < head:
            found[problem.line, problem.kind] += 1
        elif problem.line >= len(one) - tail:
            found[problem.line + moved, problem.kind] += 1
    return found


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Lines that both begin with."""
    for place, (line, counterpart) in enumerate(zip(one, other, strict=False)):
        if line != counterpart:
            return place
    return min(len(one), len(other))
