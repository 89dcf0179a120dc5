"""`phoenix models` and `phoenix model list|install|remove|use`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct

from engine.ports import ModelInfo
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.output import terminal_columns, write_json, write_line, write_progress, write_table
from phoenix_tui.models.fetch import ModelFileError
from phoenix_tui.models.files import InstallChoice, ModelFile, ModelFiles, ModelFileState
from phoenix_tui.models.known import KNOWN_MODELS
from phoenix_tui.text.model_text import LEAST_NAME, UNKNOWN, price_text, window_text
from tools.clean import clean_line
from tools.contract import JsonObject

MEBIBYTE = 1024 * 1024
NOTE_COLUMNS = 100
"""Columns of a terminal that has room for the notes."""
LEAST_NOTE = 16
"""Cells of a note, at least."""
OTHER_COLUMNS = 38
"""Cells of the columns beside the name in `phoenix models`, without the last one."""


def show_models(models: Sequence[ModelInfo], default: str, *, as_json: bool) -> Exit:
    """The models on offer; the one a new conversation would get is marked."""
    if as_json:
        write_json([_model_object(model, default) for model in models])
        return Exit.OK
    rows = [
        (
            "*" if model.reference == default else "",
            _name(model.reference),
            f"{model.context_window:,}" if model.context_window else window_text(model),
            {True: "yes", False: "no", None: "unknown"}[model.vision],
            price_text(model) or UNKNOWN,
            ", ".join(filter(None, ("this machine" if model.local else "", model.note))),
        )
        for model in models
    ]
    shown = 5 if 0 < terminal_columns() < NOTE_COLUMNS else 6
    write_table(("", "MODEL", "WINDOW", "IMAGES", "$/M IN/OUT", "NOTE")[:shown], [row[:shown] for row in rows])
    return Exit.OK


def _name(reference: str) -> str:
    """A reference of which a terminal leaves out the middle, where the columns behind it would not be seen."""
    columns = terminal_columns()
    room = max(columns - OTHER_COLUMNS - (LEAST_NOTE if columns >= NOTE_COLUMNS else 0), LEAST_NAME)
    if not columns or len(reference) <= room // 2:
        return reference
    from phoenix_tui.markdown.lines import cut_middle  # noqa: PLC0415 - 9 ms of rich, for long names

    return cut_middle(clean_line(reference), room)


def _model_object(model: ModelInfo, default: str) -> JsonObject:
    return {
        "model": model.reference,
        "default": model.reference == default,
        "context_window": model.context_window or None,
        "max_output": model.max_output or None,
        "vision": model.vision,
        "local": model.local,
        "tools": model.tools,
        "reasoning": model.reasoning,
        "price_in": model.price_in,
        "price_out": model.price_out,
        "note": model.note,
    }


class ModelCommands(Struct, frozen=True):
    """The sub-commands over the models folder."""

    files: ModelFiles
    arguments: CommandArguments
    default: InstallChoice

    async def run(self) -> Exit:
        """Do one action.

        Raises:
            CommandError: unknown model, no yes, no space, no source.
        """
        try:
            match self.arguments.action:
                case "install":
                    await self._install()
                case "remove":
                    self._remove()
                case "use":
                    self._use()
                case _:
                    self._list()
        except ModelFileError as error:
            raise CommandError(str(error), Exit.FAILED) from error
        return Exit.OK

    def _list(self) -> None:
        files = self.files.list()
        if self.arguments.json:
            write_json([_file_object(file) for file in files])
            return
        rows = [(file.name, file.state.value, f"{file.full_size / MEBIBYTE:,.0f} MiB", file.title) for file in files]
        write_table(("NAME", "STATE", "SIZE", "MODEL"), rows)
        for file in files:
            if file.state is ModelFileState.CHANGED:
                write_line(
                    f"{file.name} does not match its known checksum; run `phoenix model install {file.name}` again."
                )

    async def _install(self) -> None:
        name = self.arguments.name or KNOWN_MODELS[0].name
        agreed = self.arguments.yes or self._ask(name)
        file = await self.files.install(name, agreed=agreed, progress=SayProgress())
        if self.arguments.json:
            write_json(_file_object(file))
        else:
            write_line(f"Installed {file.name}. Use it with `phoenix -m {file.reference}`.")
            write_line("\n".join(known.notice.strip() for known in KNOWN_MODELS if known.name == file.name))

    def _ask(self, name: str) -> bool:
        """The user's explicit yes; without a terminal there is none."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        known = next((file for file in self.files.list() if file.name == name), None)
        if known is None:
            return False
        sys.stderr.write(f"{known.title}: download {known.full_size / 1e9:.1f} GB? [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    def _remove(self) -> None:
        name = self.arguments.name
        if not self.files.remove(name):
            raise CommandError(f"{name} is not installed; `phoenix model list` shows what is installed.")
        if self.arguments.json:
            write_json({"model": name, "action": "remove"})
        else:
            write_line(f"Removed {name}.")

    def _use(self) -> None:
        name = self.arguments.name.removeprefix("local/")
        if "/" in name:
            self.default.set(name)
            reference = name
        else:
            reference = self.files.use(name)
        if self.arguments.json:
            write_json({"model": reference, "action": "use"})
        else:
            write_line(f"New conversations use {reference}.")


@dataclass(slots=True)
class SayProgress:
    """A line on stderr for every twentieth of a download."""

    said: int = -1

    def __call__(self, done: int, total: int) -> None:
        """Bytes so far, bytes in all."""
        share = done * 20 // total if total else 0
        if share != self.said:
            self.said = share
            write_progress(f"{share * 5} % of {total / MEBIBYTE:,.0f} MiB")


def _file_object(file: ModelFile) -> JsonObject:
    return {
        "name": file.name,
        "model": file.reference,
        "state": file.state.value,
        "size": file.size,
        "full_size": file.full_size,
        "title": file.title,
        "path": str(file.path),
    }
