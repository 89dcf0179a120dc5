"""Works on texts of models, files, tools, servers and terminals, each to be tried with hostile texts.

`python -m tests.support.hostile_work NAME` does the work of one; the kernel ends it after `CPU_SECONDS`.
"""

from __future__ import annotations

import random
import resource
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

SIZE: Final = 12_000
"""Characters of a text. A loop that takes the square of it needs minutes for all, one that takes it once seconds."""
CPU_SECONDS: Final = 40
"""Seconds of processor time for all texts of one work: most take 1 to 4."""
UNITS: Final = (
    *("a", "1", " ", "\t", "\n", ".", "-", "_", "/", "\\", "'", '"', "`", "*", "~", "|", "#", ">", "=", "@", "$", "!"),
    *("[", "]", "(", ")", "{", "}", "<", "&", ";", ":", ",", "漢", "\u0301", "é", "👩\u200d", "❤\ufe0f", "\xa0", "ا"),
    *("[a](", "![", "**a ", "*a ", "__a ", "~~~", "```", "> - ", "- a\n", "|a", "$(", "${", "<<a\n", "a b ", '\\"'),
    *(
        "<tool_call>",
        "<think>",
        '{"a":',
        "[{",
        "@a/b ",
        "https://a",
        "://a:",
        "\x1b[31m",
        "\r",
        "\x08",
        "\x00",
        "\u202e",
    ),
    *("ignore previous instructions ", "-\n+\n", " a\n", "@@ -1 +1 @@\n", "A=b;", "please "),
)
"""Pieces that texts are made of: signs that open something, close it, or belong to many words."""


def texts() -> Iterator[str]:
    """Hostile texts: one sign many times, as a whole and in lines, and mixtures from a seed."""
    for unit in UNITS:
        yield unit * (SIZE // len(unit))
        yield f'"a{unit * (SIZE // len(unit) // 2)}\x00!\n'
    mixing = random.Random(24)
    for _ in range(20):
        few = mixing.sample(UNITS, 4)
        yield "".join(mixing.choice(few) for _ in range(SIZE // 3))


def _cleaning(text: str) -> None:
    from tools.clean import clean, clean_line, reveal  # noqa: PLC0415 - one work, one import; as below
    from tools.clean_pieces import clean_words  # noqa: PLC0415 - as above
    from tools.look_alikes import in_order, remarks  # noqa: PLC0415 - as above

    for work in (clean, clean_line, reveal, clean_words, in_order, remarks):
        work(text)


def _diffs(text: str) -> None:
    from phoenix_tui.widgets.blocks.diff import diff_block  # noqa: PLC0415 - as above
    from tools.contract import DiffDisplay  # noqa: PLC0415 - as above
    from tools.files.content import diff_display  # noqa: PLC0415 - as above

    diff_block(diff_display("a.py", text, text[::-1]), 100, is_open=True)
    lines = [text[at : at + 990].replace("\n", " ") for at in range(0, len(text), 990)]
    pairs = [*(f"-{line}" for line in lines), *(f"+{line[::-1]}" for line in lines)]
    diff_block(DiffDisplay("a.py", "\n".join(["@@ -1 +1 @@", *pairs]), 1, 1), 160, is_open=True)


def _edits(text: str) -> None:
    from tools.arguments import ToolFailure  # noqa: PLC0415 - as above
    from tools.files.content import FileEdit, Operation, apply_edits  # noqa: PLC0415 - as above

    for old in (f"{text[: SIZE // 2]}\x01", "\n".join([*(f"{line} " for line in text.split("\n")), "zz"])):
        try:
            apply_edits(text, [FileEdit(Operation.REPLACE, "n", old)])
        except ToolFailure:
            continue


def _questions(text: str) -> None:
    from phoenix_tui.text.request_text import odd_in  # noqa: PLC0415 - as above
    from phoenix_tui.widgets.question_text import lay_out, what_text  # noqa: PLC0415 - as above
    from tests.support.fake_engine import question  # noqa: PLC0415 - as above

    asked = question(text)
    lay_out(asked, 80)
    what_text(asked)
    odd_in(asked)


def _tool_rows(text: str) -> None:
    from engine.machine.messages import ToolStatus  # noqa: PLC0415 - as above
    from phoenix_tui.widgets.blocks.rows import ToolView, summary_of  # noqa: PLC0415 - as above
    from phoenix_tui.widgets.blocks.tool_row import tool_block  # noqa: PLC0415 - as above

    view = ToolView("1", "bash", text, ToolStatus.SUCCESS, text=text)
    list(islice(tool_block(view, 100, is_open=True).rows, 2_000))
    summary_of(text)


def _speech(text: str) -> None:
    from phoenix_tui.widgets.blocks import speech  # noqa: PLC0415 - as above
    from phoenix_tui.widgets.markdown_rows import markdown_rows  # noqa: PLC0415 - as above

    list(islice(speech.thinking_rows(text, 100), 2_000))
    list(islice(speech.notice_rows(text, 100), 2_000))
    list(islice(markdown_rows(text, 100), 2_000))


def _commands(text: str) -> None:
    from engine.permissions.command_rules import command_matches, command_pattern, only_reads  # noqa: PLC0415 - as above
    from engine.permissions.known_programs import stem  # noqa: PLC0415 - as above
    from engine.permissions.shell_parts import shell_parts  # noqa: PLC0415 - as above
    from tools.command_access import command_access  # noqa: PLC0415 - as above

    shell_parts(text)
    command_matches("git *", text, Path("/a"))
    command_pattern(text, Path("/a"))
    only_reads(text)
    stem(text)
    command_access(text)


def _replies(text: str) -> None:
    from engine.context.input_guard import suspicions  # noqa: PLC0415 - as above
    from engine.context.reply_sanitizer import sanitize  # noqa: PLC0415 - as above
    from engine.providers.openai_compatible.json_protocol import StepReader  # noqa: PLC0415 - as above
    from engine.providers.wire import _has_too_many_objects  # noqa: PLC0415 - as above
    from tools.redaction import redact  # noqa: PLC0415 - as above

    suspicions(text)
    sanitize(text)
    redact(text, ["abc"])
    _has_too_many_objects(b"[" * 60_000 + text.encode("utf-8", "replace"))
    reader = StepReader()
    for at in range(0, len(text), 7):
        list(reader.feed(text[at : at + 7]))


def _lines(text: str) -> None:
    from phoenix_tui.linear.transcript import AnswerLines  # noqa: PLC0415 - as above

    answer = AnswerLines()
    for at in range(0, len(text), 7):
        answer.add(text[at : at + 7])
    answer.end()
    answer.add(text)
    answer.end()


def _searches(text: str) -> None:
    from engine.memory.passages import split_passages, words_of  # noqa: PLC0415 - as above
    from engine.search import occurrences  # noqa: PLC0415 - as above
    from engine.store.message_search import make_snippet  # noqa: PLC0415 - as above
    from phoenix_tui.text.fuzzy import Corpus  # noqa: PLC0415 - as above

    occurrences(text, ["a", "aa"])
    make_snippet(text, ["a", "1", " "])
    split_passages(text)
    words_of(text)
    Corpus([name or "a" for name in text.split("\n")]).search(text[:60].replace("\n", ""), 20)


def _files(text: str) -> None:
    from engine.extensions.skills import parts_of  # noqa: PLC0415 - as above
    from phoenix_tui.config.front_matter import FrontMatterError, read_front_matter  # noqa: PLC0415 - as above
    from phoenix_tui.config.imports import import_names  # noqa: PLC0415 - as above
    from phoenix_tui.config.load import line_of  # noqa: PLC0415 - as above
    from tools.process.git_control import NAMED  # noqa: PLC0415 - as above

    for start in ("", "---\n", "---\na: ", "---\na: ["):
        try:
            read_front_matter(f"{start}{text}\n---\nbody")
        except FrontMatterError:
            continue
    parts_of(text)
    list(import_names(text))
    line_of(text, "a", "b")
    NAMED.findall(text)


WORKS: Final[dict[str, Callable[[str], None]]] = {
    work.__name__.strip("_"): work
    for work in (
        *(_cleaning, _diffs, _edits, _questions, _tool_rows, _speech, _commands, _replies, _lines, _searches, _files),
    )
}


def main(name: str) -> None:
    """Do the work of this name on all texts."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    for text in texts():
        WORKS[name](text)


if __name__ == "__main__":
    main(sys.argv[1])
