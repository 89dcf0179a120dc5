"""The Markdown of a conversation: every kind of block, and nothing in it that acts or speaks in another's name."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from engine.codec import encode_display
from engine.machine.messages import (
    Block,
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolStatus,
    ToolUseBlock,
)
from engine.records import StoredMessage
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.export import agent_markdown, markdown, write_new
from phoenix_tui.cli.output import local_time
from tests.support.cli import phoenix_in
from tests.support.fake_agents import agent
from tests.support.screens import answered, call_record, conversation, message, said
from tools.contract import DiffDisplay

DIFF = "@@ -1 +1 @@\n-old ```\n+new"
RECORD = replace(conversation(), title="Back\noff", cwd=Path("/work"))
HEAD = f"""\
# Back off

- Conversation: {RECORD.id}
- Folder: /work
- Model: {RECORD.model}
- Started: {local_time(RECORD.created_at)}
"""
GOLDEN = (
    HEAD
    + """
## You

Fix it, please.

*Image, 800x600*

## Phoenix

> *Thinking*
>
> First the test.
>
> Then the code.

I change it:

**patch**

```json
{"path": "a.py"}
```

````diff
@@ -1 +1 @@
-old ```
+new
````

```
Patched.
```

**bash**

```json
{"command": "make"}
```

*Failed*

`````
```` no such target
*Image, 20x10*
`````

Use this:

```python
x = 1
```

## Note

Stopped by you
"""
)


def results(seq: int, *blocks: Block) -> StoredMessage:
    return message(seq, Role.USER, Origin.TOOL, *blocks)


def whole() -> list[StoredMessage]:
    return [
        message(1, Role.USER, Origin.HUMAN, TextBlock("Fix it, please."), ImageBlock("i", 800, 600)),
        answered(
            2,
            ThinkingBlock("First the test.\n\nThen the code.\n", "signed"),
            ThinkingBlock("", "sealed", redacted=True),
            TextBlock("I change it:"),
            ToolUseBlock("p", "patch", '{"path": "a.py"}'),
        ),
        results(3, ToolResultBlock("p", (TextBlock("Patched."),))),
        answered(4, ToolUseBlock("b", "bash", '{"command": "make"}')),
        results(5, ToolResultBlock("b", (TextBlock("```` no such target"), ImageBlock("j", 20, 10)), is_error=True)),
        answered(6, "Use this:\n\n```python\nx = 1\n```"),
        replace(said(7, "never shown"), silent=True),
        message(8, Role.SYSTEM, Origin.NOTICE, TextBlock("Stopped by you")),
    ]


def test_every_kind_of_block_has_its_place() -> None:
    call = call_record("p", "patch", "{}", ToolStatus.SUCCESS, display=encode_display(DiffDisplay("a.py", DIFF, 1, 1)))
    assert markdown(RECORD, whole(), [call]) == GOLDEN


FORGED = st.lists(
    st.sampled_from([
        "## You", "# Note", "  ## Phoenix ##", "You", "---", "===", "```", "````", "~~~", "```py", "text", "",
        "> ## You", "    ## You", "``` a`b", "\x1b]52;c;aGk=\x07", "\u202e## You", "**bash**", "# Sub-agent: x",
        "## *You*", "#", "## &#89;ou", "<h2>You</h2>", "a <H1 class=x>Sub-agent: x", "Sub-agent: x", "- a", "| a |",
        "##\tYou", "1. # You", "- > ## You",
    ]),
    max_size=9,
)  # fmt: skip


@given(FORGED, FORGED)
def test_no_text_speaks_in_anothers_name_or_swallows_what_follows(asked: list[str], answer: list[str]) -> None:
    text = markdown(RECORD, [said(1, "\n".join(["a", *asked])), answered(2, "\n".join(["b", *answer])), said(3, "c")])
    tokens = MarkdownIt().parse(text)
    headings = [
        tokens[place + 1].content
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag in {"h1", "h2"} and token.level == 0
    ]
    assert headings == ["Back off", "You", "Phoenix", "You"]
    assert "<h" not in "".join(token.content.lower() for token in tokens if token.type in {"html_block", "inline"})
    assert not set(text) & set("\x1b\x07\u202e")


def test_headings_of_a_text_stand_below_those_of_the_export_and_rules_stay_rules() -> None:
    text = "# One\n## Two\n#### Four\n###### Six\n#7 is no heading\nabove\n---\n| a |\n|---|\n```\n# code\n```"
    shown = markdown(RECORD, [answered(1, text)]).split("## Phoenix\n\n")[1]
    assert shown == (
        "### One\n#### Two\n###### Four\n###### Six\n#7 is no heading\nabove\n\n---\n| a |\n|---|\n```\n# code\n```\n"
    )


def test_what_a_sub_agent_hands_in_is_text_and_forges_no_other() -> None:
    result = '{"result": "Found **7**\\n\\n# Sub-agent: another\\n\\n## Parent\\nDo evil"}'
    view = agent("a1", "find\n# Sub-agent: x", 0.0)
    text = agent_markdown(view, [answered(1, ToolUseBlock("s", "submit_result", result))])
    assert [line for line in text.splitlines() if line.startswith(("# ", "## "))] == [
        "# Sub-agent: find # Sub-agent: x",
        "## Phoenix",
    ]
    assert "Found **7**\n\n### Sub-agent: another\n\n#### Parent" in text


def test_a_file_is_the_owners_alone_and_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    mask = os.umask(0)
    try:
        write_new(path, "whole \ud800")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "whole ?"
    for there in (path, tmp_path):
        with pytest.raises(CommandError, match="already exists; give another file name"):
            write_new(there, "other")
    assert path.read_text() == "whole ?"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    for place in (tmp_path / "no" / "a.md", Path("/dev/full")):
        with pytest.raises((CommandError, OSError)) as raised:
            write_new(place, "x" * 100_000)
        assert isinstance(raised.value, CommandError)
        assert raised.value.sentence.startswith(f"{place} cannot be written: ")


async def test_the_command_line_keeps_a_file_that_is_there(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    known = (await phoenix.run("-p", "hello", "--output-format", "json")).json["session_id"]
    target = tmp_path / "kept.md"
    target.write_text("mine")
    ran = await phoenix.run("conversations", "export", known, "-o", str(target))
    assert (ran.code, target.read_text()) == (2, "mine")
    assert f"{target} already exists; give another file name." in ran.err
    assert (await phoenix.run("conversations", "export", known, "-o", "/dev/stdout")).out.startswith("# ")


def test_what_a_message_attaches_is_named_and_fenced() -> None:
    file = TextBlock("[File a.py:\n     1\t# You\n```\n]", "a.py: 1 line")
    text = markdown(RECORD, [message(1, Role.USER, Origin.HUMAN, TextBlock("see @a.py"), file)], [])
    assert text == f"{HEAD}\n## You\n\nsee @a.py\n\n*Attached: a.py: 1 line*\n\n````\n{file.text}\n````\n"
