"""Vim's keys over a text: `|` is the cursor, `\\x1b` an Esc."""

from __future__ import annotations

import pytest

from phoenix_tui.widgets.vim import Draft, Mode, VimState, VimStep, press

NORMAL = VimState(Mode.NORMAL)


def played(before: str, keys: str, marks: tuple[tuple[int, int], ...] = ()) -> tuple[str, Mode, list[str]]:
    """The text with `|` at the cursor after all keys; in INSERT they are letters."""
    at, text, state = before.index("|"), before.replace("|", "", 1), NORMAL
    requests: list[str] = []
    for key in keys:
        if state.mode is Mode.INSERT and key != "\x1b":
            text, at = text[:at] + key + text[at:], at + 1
            continue
        step = VimStep(state.rest(), at) if key == "\x1b" else press(state, key, Draft(text, at, marks))
        text = text if step.edit is None else step.edit.apply(text)
        state, at = step.state, step.at
        requests += [step.request] if step.request else []
    return f"{text[:at]}|{text[at:]}", state.mode, requests


MOTIONS = [
    ("one |two", "h", "one| two"),
    ("|one", "h", "|one"),
    ("one |two", "2l", "one tw|o"),
    ("one|", "l", "on|e"),
    ("o|ne\ntwo", "j", "one\nt|wo"),
    ("one\ntw|o\n", "k", "on|e\ntwo\n"),
    ("lon|g\n\nx", "2j", "long\n\n|x"),
    ("|one two.three", "w", "one |two.three"),
    ("|one two.three", "3w", "one two.|three"),
    ("|one two.three", "2W", "one two.thre|e"),
    ("|one\n\ntwo", "w", "one\n|\ntwo"),
    ("one tw|o", "b", "one |two"),
    ("one two|", "2b", "|one two"),
    ("|one two", "e", "on|e two"),
    ("on|e two", "e", "one tw|o"),
    ("  one t|wo", "0", "|  one two"),
    ("  one t|wo", "^", "  |one two"),
    ("|one\ntwo", "$", "on|e\ntwo"),
    ("one\n two\nthre|e", "gg", "|one\n two\nthree"),
    ("|one\n two\nthree", "2G", "one\n |two\nthree"),
    ("|one\n two\nthree", "G", "one\n two\n|three"),
    ("|a.b.c", "f.", "a|.b.c"),
    ("|a.b.c", "2f.", "a.b|.c"),
    ("|a.b.c", "f.;", "a.b|.c"),
    ("|a.b.c", "f.;,", "a|.b.c"),
    ("a.b.|c", "T.", "a.b.|c"),
    ("a.b.|c", "F.", "a.b|.c"),
    ("|aa.b.c", "t.;", "aa.|b.c"),
    ("|a.b", "fx", "|a.b"),
]
OBJECTS = [
    ("one t|wo three", "diw", "one | three"),
    ("one t|wo three", "daw", "one |three"),
    ("one two thr|ee", "daw", "one tw|o"),
    ("one| two x", "daw", "one| x"),
    ("a b|c d e", "2daw", "a |e"),
    ("a b|c d e", "d3iw", "a | e"),
    ("x.y-|z a", "daW", "|a"),
    ("|", "diw", "|"),
    ('say "he|llo" x', 'di"', 'say "|" x'),
    ("no quo|te", "di'", "no quo|te"),
    ("f(a, g(b|), c)", "di(", "f(a, g(|), c)"),
    ("f(a, g(b|), c)", "d2ab", "|f"),
    ("{\n  a|b\n  c\n}", "diB", "{\n|\n}"),
    ("<a|> (", "di(", "<a|> ("),
    ("a\nb|\n\n\nc", "dip", "|\n\nc"),
    ("a\nb|\n\n\nc", "dap", "|c"),
    ("one t|wo", "viwd", "one| "),
    ("f(a|b)", "va(d", "|f"),
    ("one\nt|wo\nthree", "Vd", "one\n|three"),
    ("o|ne\ntwo\nthree", "Vjd", "|three"),
    ("o|ne\ntwo", "Vvx", "o|e\ntwo"),
    ("o|ne", "VVx", "o|e"),
]
EDITS = [
    ("|one", "x", "|ne"),
    ("on|e", "x", "o|n"),
    ("o|ne", "9x", "|o"),
    ("on|e", "2X", "|e"),
    ("|", "x", "|"),
    ("|one", "rx", "|xne"),
    ("|one", "2rx", "x|xe"),
    ("|one", "4rx", "|one"),
    ("|oNe", "2~", "On|e"),
    ("one\n|two\nthree", "dd", "one\n|three"),
    ("one\n|two", "dd", "|one"),
    ("|one\ntwo\nthree", "2dd", "|three"),
    ("|one", "dd", "|"),
    ("|one two", "dw", "|two"),
    ("one |two\nthree", "dw", "one| \nthree"),
    ("|a b c d e", "2d2w", "|e"),
    ("|one two", "de", "| two"),
    ("one tw|o", "db", "one |o"),
    ("o|ne two", "d$", "|o"),
    ("o|ne two", "D", "|o"),
    ("one tw|o", "d0", "|o"),
    ("|one\ntwo\nthree", "dj", "|three"),
    ("one\n|two", "dj", "one\n|two"),
    ("one\ntwo\nth|ree", "dgg", "|"),
    ("|one\ntwo", "dG", "|"),
    ("|f(a, b)", "dt,", "|, b)"),
    ("|f(a, b)", "df,d;", "| b)"),
    ("f(a, |b)", "dF(", "f|b)"),
    ("|one", "dxx", "|ne"),
    ("|one two", "ywP", "one| one two"),
    ("|ab", "xp", "b|a"),
    ("|one\n two", "yyjp", "one\n two\n|one"),
    ("one\n|two", "yykP", "|two\none\ntwo"),
    ("|one\ntwo", "ddp", "two\n|one"),
    ("|x", "ylp2p", "xxx|x"),
    ("|one\n  two", "J", "one| two"),
    ("|a\nb\nc", "3J", "a b| c"),
    ("f(|a\n)", "J", "f(a|)"),
    ("on|e", "J", "on|e"),
    ("|one two", "ved", "| two"),
    ("on|e two", "vbd", "| two"),
    ("|one two", "vlyP", "o|none two"),
    ("|one", "vllv", "on|e"),
]
TYPED = [
    ("o|ne", "ix", "ox|ne"),
    ("o|ne", "ax", "onx|e"),
    (" o|ne", "Ix", " x|one"),
    ("o|ne", "Ax", "onex|"),
    ("o|ne\ntwo", "ox", "one\nx|\ntwo"),
    ("one\nt|wo", "Ox", "one\nx|\ntwo"),
    ("|one two", "cwx", "x| two"),
    ("|a b c", "2cwx", "x| c"),
    ("o|ne\ntwo", "ccx", "x|\ntwo"),
    ("o|ne", "Cx", "ox|"),
    ("|one", "sx", "x|ne"),
    ("|one two", "vecx", "x| two"),
    ("|(a)", "f)cF(x", "x|)"),
    ('s|ay "hello" x', 'ca"it', "say it|x"),
    ("f|[a]", "ci]b", "f[b|]"),
    ("|", "/help", "/help|"),
    ("|", "!ls", "!ls|"),
    ("|", "@a", "@a|"),
]


@pytest.mark.parametrize(("before", "keys", "after"), [*MOTIONS, *OBJECTS, *EDITS])
def test_a_key_of_vim_moves_and_edits(before: str, keys: str, after: str) -> None:
    assert played(before, keys) == (after, Mode.NORMAL, [])


@pytest.mark.parametrize(("before", "keys", "after"), TYPED)
def test_a_key_of_vim_begins_to_write_at_its_place(before: str, keys: str, after: str) -> None:
    assert played(before, keys) == (after, Mode.INSERT, [])


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("u", ["undo"]),
        (".", ["repeat"]),
        ("d.", []),
        ("j", ["newer"]),
        ("k", ["older"]),
        ("dj", []),
        ("vj", []),
        ("/", []),
    ],
)
def test_what_the_text_alone_cannot_give_is_wished_for(keys: str, wanted: list[str]) -> None:
    assert played("|one", keys)[2] == wanted


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [("ab |[mark] c", "x", "ab | c"), ("ab |[mark] c", "rx", "ab |[mark] c"), ("|ab [mark] c", "dfm", "| c")],
)
def test_a_folded_paste_is_one_thing(before: str, keys: str, after: str) -> None:
    assert played(before, keys, ((3, 9),))[0] == after


def test_a_count_without_end_holds_nothing_up() -> None:
    text, _, _ = played("|one", "yy99999999p")
    assert text.count("one") == 10_000


def test_an_escape_takes_back_what_was_begun() -> None:
    assert played("|one two", "2d\x1bx") == ("|ne two", Mode.NORMAL, [])


@pytest.mark.parametrize(
    ("keys", "change"),
    [("dw", "dw"), ("2d3wj", "2d3w"), ("ciwx\x1b", "ciw"), ("A!\x1b", "A"), ("xyw", "x"), ("xd\x1b", "x"), ("vlx", "")],
)
def test_the_last_command_that_changed_something_is_remembered(keys: str, change: str) -> None:
    state, text = NORMAL, "one two three"
    for key in keys:
        if state.mode is Mode.INSERT or key == "\x1b":
            state = state.rest() if key == "\x1b" else state
        else:
            state = press(state, key, Draft(text, 0)).state
    assert state.change == change
