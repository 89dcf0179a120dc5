"""Texts of the guide about itself."""

from __future__ import annotations

from engine.providers.guide.requests import Courtesy

SIGNATURE = "*demo/guide: rules, no model. `/model` or `phoenix model install` for a real one.*"
"""Last line of every answer, so that the guide is not taken for a model."""

ABILITIES = """\
| say | and I |
|---|---|
| `list files`, `ls src`, `list *.py` | list them |
| `read README.md` and other files, `what's in setup.cfg` | show them |
| `search TODO in *.py` | search the files |
| `run make lint`, `!git log -3`, `run the tests` | run it, after your yes |
| `what changed in git` | show status and diff |
| `replace old with new in FILE` | patch the file, after your yes |
| `write FILE with CONTENT` (or a code block) | write it, after your yes |
| `describe this project` | look around and sum up |
| `count to 10`, `count the lines in FILE`, `think about X`, `summarize this conversation` | do just that |"""

MODEL_OPTIONS = """\
For a real model, any one of these:
- set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY` (or `OPENAI_BASE_URL`) and choose it with `/model`;
- run `phoenix model install`: about 1.1 GB, then it works offline, on this machine alone;
- start a local server with a model: Ollama, LM Studio, llama.cpp or vLLM is found by itself."""

NOT_UNDERSTOOD = f"""\
I did not understand that. I am `demo/guide`: a few fixed rules, no language model, so I can only do the following:

{ABILITIES}

{MODEL_OPTIONS}"""

HELP = f"""\
I follow fixed rules and use Phoenix's real tools. This is all I understand:

{ABILITIES}

{MODEL_OPTIONS}"""

COURTESIES = {
    Courtesy.HELLO: "Hello! I can look around in this folder, run commands and edit files by fixed rules. "
    "Try `describe this project`, or `help` for the whole list.",
    Courtesy.THANKS: "You're welcome.",
    Courtesy.GOODBYE: "Goodbye. This conversation is saved; `phoenix -c` comes back to it.",
    Courtesy.WHO: "I am `demo/guide`, a handful of fixed rules inside Phoenix. I read, search, edit and run for you, "
    "but I do not think.\n\n" + MODEL_OPTIONS,
    Courtesy.HOW: "All rules in place. What shall I do? `help` lists what I understand.",
}

NOT_UNDERSTOOD_SENTENCE = (
    "demo/guide answers by fixed rules and did not understand this request: set ANTHROPIC_API_KEY or OPENAI_API_KEY, "
    "run `phoenix model install`, or start a local server such as Ollama."
)
"""The one sentence for a script (CONTRACT 5: exit 41)."""
