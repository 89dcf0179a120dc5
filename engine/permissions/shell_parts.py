"""The simple commands of a shell text, found however they are nested, for rules that deny.

`shell_words.py` accepts only text that is known to be literal, for rules that allow. Here the error must be on the
other side: every command that the shell may run is found, a word whose value only the shell knows is marked, and text
that cannot be taken apart says so.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct, field

UNKNOWN: Final = "\0"
"""Placeholder in a word for a value that only the shell knows; no command line can hold it."""
DEEPEST: Final = 30
"""Levels of substitutions that are looked into."""
UNCLOSED: Final = "a quote or bracket in it is not closed"
TOO_DEEP: Final = "its substitutions are nested too deeply"
ODD_BLANK: Final = "it has a blank that some shells do not take for one"
PROMPT: Final = "it has a value expanded as a prompt, which runs the commands in it"
CASE: Final = "it has a case statement inside a substitution"
OPENING: Final = frozenset({"{", "while", "until", "for", "if", "case", "select", "!", "time", "coproc"})
"""Words of the shell behind which several commands may share one input."""
_RUN: Final = re.compile(r"[A-Za-z0-9_./:=@%+,^!\]}-]+")
_NAME: Final = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]", re.ASCII)
_DELIMITER: Final = re.compile(r"(-?)[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|<>()'\"\\])+)")
_REDIRECTION: Final = re.compile(r"&?(?:>>|>\||>&|<&|<>|>|<)")
_ALONE: Final = re.compile(r"\[?(?:\s|$)")
_DESCRIPTOR: Final = re.compile(r"\d+|\{\w+\}?")
_IN_DOUBLE: Final = re.compile(r"[^\"\\$`]+")
_IN_BACKTICKS: Final = re.compile(r"((?:[^`\\]|\\.)*)`", re.DOTALL)
_ANSI: Final = re.compile(r"((?:[^'\\]|\\.)*)'", re.DOTALL)
_BLANKS: Final = " \t\r"
_SEPARATORS: Final = ";&|("


class Word(Struct, frozen=True):
    """One word after the shell has removed quotes; UNKNOWN where it puts a value in."""

    text: str
    splits: bool = False
    """True if it may become no word, or several."""

    @property
    def is_known(self) -> bool:
        """True if the shell passes on exactly this text."""
        return not self.splits and UNKNOWN not in self.text


class ShellParts(Struct):
    """The simple commands of a text in the order of their ends, and why there may be others."""

    commands: list[tuple[Word, ...]]
    doubt: str = ""
    fed: list[bool] = field(default_factory=list[bool])
    """One value a command, true where the line gives it an input: by a pipe, `<<`, `<<<` or `<(…)`."""
    written: list[tuple[int, Word]] = field(default_factory=list[tuple[int, Word]])
    """Files that redirections write, each with the number of commands before it."""


def shell_parts(text: str) -> ShellParts:
    """Take a shell text apart, in time linear in its length; what cannot be read is a doubt, never an error."""
    return _Reader(text, 0).read()


class _Reader:
    """Reads one text from left to right; a substitution is read in place, with a command of its own."""

    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._place = 0
        self._depth = depth
        self._found = ShellParts([])
        self._command: list[Word] = []
        self._pieces: list[str] | None = None
        """Pieces of the present word; None between two words."""
        self._splits = False
        self._has_bracket = False
        """`[` is in the present word, in which `<<` may be a shift."""
        self._is_target = False
        """The next word is the file of a redirection."""
        self._is_output = False
        """True where that file is written."""
        self._is_fed = False
        """The present command has an input from the line itself."""
        self._stays_fed = False
        """True where all later commands have one too: the end of its bracket or keyword is not looked for."""
        self._has_case = "esac" in text
        self._has_no_documents = "((" in text
        """`<<` is read as a plain operator: it may be a shift, and what follows it commands."""
        self._documents: list[tuple[str, bool, bool]] = []
        """Here-documents that begin after this line: delimiter, tabs stripped, literal."""

    def read(self) -> ShellParts:
        """All of it."""
        self._commands(ends=False)
        self._end_command()
        return self._found

    def read_document(self) -> ShellParts:
        """Text in which only substitutions mean something: the body of a here-document."""
        while self._place < len(self._text):
            if not self._special(quoted=True):
                self._place += 1
        return self._found

    def _commands(self, *, ends: bool) -> None:
        """Read commands to the end of the text, or to the bracket that closes a substitution."""
        open_brackets = 0
        while self._place < len(self._text):
            sign = self._text[self._place]
            if sign == ")":
                self._end_command()
                self._place += 1
                if ends and not open_brackets:
                    return
                open_brackets = max(open_brackets - 1, 0)
            elif sign == "\n":
                self._end_line()
            elif sign in "<>" or self._text.startswith("&>", self._place):
                self._redirection()
            elif sign in _SEPARATORS:
                self._stays_fed = self._stays_fed or (sign == "(" and self._is_fed)
                self._end_command()
                self._is_fed = self._is_fed or self._is_pipe()
                open_brackets += sign == "("
                self._place += 1
            elif sign in _BLANKS:
                self._end_word()
                self._place += 1
            elif sign == "#" and self._pieces is None:
                self._place = self._find("\n")
            else:
                self._word()
        if ends:
            self._doubt(UNCLOSED)

    def _is_pipe(self) -> bool:
        """True at `|` and `|&`; the second sign of `||` and what stands before it are none."""
        around = self._text[max(self._place - 1, 0) : self._place + 2]
        return self._text[self._place] == "|" and "||" not in around and not self._text.startswith("|", self._place + 1)

    def _word(self) -> None:
        """Read the next piece of a word."""
        run = _RUN.match(self._text, self._place)
        if run is not None:
            self._add(run.group(), run.end())
        elif not self._special(quoted=False):
            sign = self._text[self._place]
            if sign.isspace() or not sign.isprintable():
                self._doubt(ODD_BLANK)
            self._splits = self._splits or sign in "*?" or (sign in "[{" and not self._is_plain_bracket(sign))
            self._has_bracket = self._has_bracket or sign == "["
            is_home = sign == "~" and self._pieces is None
            self._add(UNKNOWN if is_home else sign, self._place + 1)

    def _is_plain_bracket(self, sign: str) -> bool:
        """True for `{`, `[` and `[[` as words of their own and for the `{}` of find."""
        if sign == "{" and self._text.startswith("}", self._place + 1):
            return True
        return self._pieces in (None, ["["]) and _ALONE.match(self._text, self._place + 1) is not None

    def _special(self, *, quoted: bool) -> bool:
        """Read a quote, an escape or an expansion; False for anything else."""
        sign = self._text[self._place]
        if sign == "\\":
            self._escape(quoted=quoted)
        elif sign == "`":
            self._backticks(quoted=quoted)
        elif sign == "$":
            self._dollar(quoted=quoted)
        elif sign == "'" and not quoted:
            end = self._find("'", 1)
            self._add(self._text[self._place + 1 : end], end + 1)
        elif sign == '"' and not quoted:
            self._double()
        else:
            return False
        return True

    def _escape(self, *, quoted: bool) -> None:
        escaped = self._text[self._place + 1 : self._place + 2]
        if escaped == "\n":
            self._place += 2
        elif quoted and escaped not in {"$", "`", '"', "\\"}:
            self._add("\\", self._place + 1)
        else:
            self._add(escaped, self._place + 2)

    def _double(self) -> None:
        self._add("", self._place + 1)
        while self._place < len(self._text):
            if self._text[self._place] == '"':
                self._place += 1
                return
            plain = _IN_DOUBLE.match(self._text, self._place)
            if plain is not None:
                self._add(plain.group(), plain.end())
            else:
                self._special(quoted=True)
        self._doubt(UNCLOSED)

    def _dollar(self, *, quoted: bool) -> None:
        behind = self._text[self._place + 1 : self._place + 2]
        if behind == "(":
            self._place += 2
            self._read_nested()
        elif behind == "{":
            self._place += 2
            self._braces(quoted=quoted)
        elif behind == "'" and not quoted:
            self._ansi()
            return
        elif behind == '"' and not quoted:
            self._place += 1
            return
        elif name := _NAME.match(self._text, self._place + 1):
            self._place = name.end()
        else:
            self._add("$", self._place + 1)
            return
        self._add_unknown(quoted=quoted)

    def _ansi(self) -> None:
        body = _ANSI.match(self._text, self._place + 2)
        if body is None:
            self._doubt(UNCLOSED)
            self._place = len(self._text)
        else:
            self._add(UNKNOWN if "\\" in body[1] else body[1], body.end())

    def _add_unknown(self, *, quoted: bool) -> None:
        self._splits = self._splits or not quoted
        self._add(UNKNOWN, self._place)

    def _braces(self, *, quoted: bool) -> None:
        """Read `${…}` to its end."""
        if not self._enter():
            return
        while self._place < len(self._text) and self._text[self._place] != "}":
            pieces, splits, self._pieces = self._pieces, self._splits, []
            if not self._special(quoted=quoted and self._text[self._place] != '"'):
                self._place += 1
            inner = "".join(self._pieces)
            self._pieces, self._splits = pieces, splits
            if ("$(" in inner or "`" in inner) and self._enter():  # quoted in a subscript, which is evaluated again
                self._depth -= 1
                self._take(_Reader(inner, self._depth + 1).read_document())
        self._depth -= 1
        if self._place == len(self._text):
            self._doubt(UNCLOSED)
        if self._text.endswith("@P", 0, self._place):
            self._doubt(PROMPT)
        self._place += 1

    def _read_nested(self) -> None:
        """Read the commands of `$(…)` or `<(…)`; the command around it goes on behind them."""
        if not self._enter():
            return
        if self._has_case:
            self._doubt(CASE)
        around = self._command, self._pieces, self._splits, self._is_target
        output, fed = self._is_output, self._is_fed
        self._command, self._pieces, self._splits, self._is_target = [], None, False, False
        self._commands(ends=True)
        self._end_command()
        self._command, self._pieces, self._splits, self._is_target = around
        self._is_output, self._is_fed = output, fed
        self._depth -= 1

    def _enter(self) -> bool:
        if self._depth < DEEPEST:
            self._depth += 1
            return True
        self._doubt(TOO_DEEP)
        self._place = len(self._text)
        return False

    def _backticks(self, *, quoted: bool) -> None:
        body = _IN_BACKTICKS.match(self._text, self._place + 1)
        if body is None:
            self._doubt(UNCLOSED)
            self._place = len(self._text)
            return
        if self._depth >= DEEPEST:
            self._doubt(TOO_DEEP)
        else:
            escaped = r"\\([\\`$\"])" if quoted else r"\\([\\`$])"
            self._take(_Reader(re.sub(escaped, r"\1", body[1]), self._depth + 1).read())
        self._place = body.end()
        self._add_unknown(quoted=quoted)

    def _redirection(self) -> None:
        if self._pieces is not None and len(self._pieces) == 1 and _DESCRIPTOR.fullmatch(self._pieces[0]):
            self._pieces = None
        is_shift = self._has_no_documents or (self._pieces is not None and self._has_bracket)
        if self._text.startswith(("<(", ">("), self._place):
            is_input = self._text[self._place] == "<"
            self._place += 2
            self._read_nested()
            self._is_fed = self._is_fed or is_input
            self._add_unknown(quoted=True)
            return
        self._end_word()
        if self._text.startswith("<<", self._place) and not self._text.startswith("<<<", self._place) and not is_shift:
            self._document()
            return
        found = _REDIRECTION.match(self._text, self._place)
        self._is_output = found is not None and ">" in found.group() and found.group() != ">&"
        self._is_fed = self._is_fed or self._text.startswith("<<<", self._place)
        self._place = found.end() if found is not None else self._place + 1
        self._place += self._text.startswith("<<", self._place - 1) * 2  # the rest of <<<
        self._is_target = True

    def _document(self) -> None:
        found = _DELIMITER.match(self._text, self._place + 2)
        if found is None:
            self._doubt(UNCLOSED)
            self._place += 2
            return
        self._is_fed = True
        literal = any(sign in found[2] for sign in "'\"\\")
        self._documents.append((re.sub(r"['\"\\]", "", found[2]), bool(found[1]), literal))
        self._place = found.end()

    def _end_line(self) -> None:
        self._end_command()
        self._place += 1
        for delimiter, strips, literal in self._documents:
            start = self._place
            if not self._pass_document(delimiter, strips=strips):
                self._doubt(UNCLOSED)
                self._place, self._has_no_documents = start, True  # what follows is read as commands
                break
            if self._depth >= DEEPEST:
                self._doubt(TOO_DEEP)
            elif not literal:
                self._take(_Reader(self._text[start : self._place], self._depth + 1).read_document())
        self._documents.clear()

    def _pass_document(self, delimiter: str, *, strips: bool) -> bool:
        """Go behind the line that ends a here-document; False where there is none."""
        while self._place < len(self._text):
            start, end = self._place, self._find("\n")
            self._place = min(end + 1, len(self._text))
            line = self._text[start:end]
            if (line.lstrip("\t") if strips else line) == delimiter:
                return True
        return False

    def _take(self, parts: ShellParts) -> None:
        before = len(self._found.commands)
        self._found.commands += parts.commands
        self._found.fed += parts.fed
        self._found.written += [(before + place, word) for place, word in parts.written]
        if parts.doubt:
            self._doubt(parts.doubt)

    def _find(self, sign: str, skipped: int = 0) -> int:
        """Place of the next `sign`; the end of the text where there is none, which only a line may have."""
        found = self._text.find(sign, self._place + skipped)
        if found < 0 and sign != "\n":
            self._doubt(UNCLOSED)
        return len(self._text) if found < 0 else found

    def _add(self, piece: str, place: int) -> None:
        if self._pieces is None:
            self._pieces = []
        self._pieces.append(piece)
        self._place = place

    def _end_word(self) -> None:
        if self._pieces is not None:
            word = Word("".join(self._pieces), self._splits)
            if not self._is_target:
                self._command.append(word)
            elif self._is_output:
                self._found.written.append((len(self._found.commands), word))
        if self._pieces is not None:
            self._is_target = False
        self._pieces, self._splits, self._has_bracket = None, False, False

    def _end_command(self) -> None:
        self._end_word()
        self._is_target = False
        if self._command:
            self._found.commands.append(tuple(self._command))
            self._found.fed.append(self._is_fed)
            self._stays_fed = self._stays_fed or (self._is_fed and self._command[0].text in OPENING)
            self._is_fed = self._stays_fed
        self._command = []

    def _doubt(self, reason: str) -> None:
        self._found.doubt = self._found.doubt or reason
