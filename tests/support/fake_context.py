"""A window whose report a test sets; keeps what was asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.context.measure import Filling, Measured, MeasuredSection, WindowPart
from engine.context.prompt import PromptSection
from engine.executor.context_manager import ContextReport, Edited, SystemPrompt
from engine.executor.requests import Accepted, Receipt, Refused, Review

PARTS = (
    WindowPart(4, 0, -1, Filling.RESULTS, 'read_file {"path":"src/app.py"}', 40_000, whole=40_000),
    WindowPart(6, 1, -1, Filling.IMAGES, "1568×1043", 1_600, whole=1_600),
    WindowPart(1, 0, -1, Filling.HISTORY, "please read everything", 900, whole=900),
)
REPORT = ContextReport(
    measured=Measured(
        (
            (Filling.SYSTEM, 2_000),
            (Filling.TOOLS, 4_000),
            (Filling.INSTRUCTIONS, 1_000),
            (Filling.SUMMARY, 0),
            (Filling.HISTORY, 30_000),
            (Filling.RESULTS, 60_000),
            (Filling.IMAGES, 2_000),
            (Filling.THINKING, 1_000),
        ),
        PARTS,
        24,
    ),
    tokens=100_000,
    window=200_000,
    estimated=False,
    compact_percent=75,
    usage=None,
    summarizable=17,
    kept=7,
    shortens=3,
    clears=4,
    images=1,
    omitted=0,
    earlier=None,
)


@dataclass
class FakeContext:
    """Answers with `answer` and `standing`."""

    shown: ContextReport = REPORT
    answer: Edited | Refused = field(default_factory=lambda: Edited(3, 100_000, 60_000))
    compacts: Receipt = field(default_factory=Accepted)
    review: Review | None = None
    asked: list[str] = field(default_factory=list[str])
    summarizing: bool = False
    counts: int = 0
    """Number of requests to count."""

    async def prompt(self) -> SystemPrompt:
        sections = (
            PromptSection("Identity", "You are Phoenix."),
            PromptSection("Safety", "# Safety\nAsk first.\x1b]52;c;aGk=\x07"),
            PromptSection("AGENTS.md", "Use tabs.", "/work/AGENTS\x1b[2J.md", is_instructions=True),
            PromptSection("Time and permissions", "Today is 2026-11-22."),
        )
        measured = tuple(MeasuredSection(one, 500 * place) for place, one in enumerate(sections, 1))
        return SystemPrompt(measured, ("bash", "patch"), 4_000)

    async def count(self) -> bool:
        self.counts += 1
        return False

    async def report(self) -> ContextReport:
        return self.shown

    async def compact(self, focus: str = "", review: Review | None = None, before: int = 0) -> Receipt:
        self.asked.append(f"compact {focus}{f'before {before}' if before else ''}".strip())
        self.review = review
        return self.compacts

    async def prune(self) -> Edited | Refused:
        return self._did("prune")

    async def strip_images(self) -> Edited | Refused:
        return self._did("strip images")

    async def omit(self, part: WindowPart) -> Edited | Refused:
        return self._did(f"omit {part.seq}")

    async def put_back(self, part: WindowPart | None = None) -> Edited | Refused:
        return self._did(f"put back {part.seq if part else 'all'}")

    async def undo(self) -> Edited | Refused:
        return self._did("undo")

    async def restore(self) -> Edited | Refused:
        return self._did("restore")

    async def set_threshold(self, percent: int) -> None:
        self.asked.append(f"threshold {percent}")

    def _did(self, what: str) -> Edited | Refused:
        self.asked.append(what)
        return self.answer
