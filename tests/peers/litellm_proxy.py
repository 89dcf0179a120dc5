"""LiteLLM's proxy: installed in a virtual environment, started on loopback before an upstream of either kind."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.waiting import poll

VERSION: Final = "1.106.2"
KEY: Final = "sk-gateway-0123456789"
"""The proxy's own."""
MODELS: Final = {"openai": "gpt-5", "anthropic": "claude-sonnet-5-5", "responses": "gpt-5"}
"""Models by the API of their upstream."""


def installed(folder: Path) -> Path:
    """A Python that has the proxy."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, f"litellm[proxy]=={VERSION}"], check=True)
    return python


@asynccontextmanager
async def proxied(folder: Path, python: Path, upstream: str, *, responses: bool = False) -> AsyncGenerator[str, None]:
    """The address of a running proxy; `responses`: it asks OpenAI as it does for clients of Claude's API by default."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "config.yaml").write_text(json.dumps(_configuration(upstream, responses=responses)))  # JSON is YAML
    given = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "DISABLE_ADMIN_UI": "True"}
    arguments = ("--config", str(folder / "config.yaml"), "--host", "127.0.0.1", "--port", str(port))
    with (folder / "proxy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            python.with_name("litellm"),
            *arguments,
            env=os.environ | given | {"HOME": str(folder)},
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
        )
    try:
        await poll(lambda: process.returncode is not None or _answers(port), seconds=180)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _configuration(upstream: str, *, responses: bool) -> dict[str, Any]:
    addresses = {"openai": f"{upstream}/v1", "anthropic": upstream}
    models = [
        {
            "model_name": model,
            "litellm_params": {"model": f"{api}/{model}", "api_base": addresses[api], "api_key": "sk-up"},
        }
        for api, model in MODELS.items()
        if api in addresses
    ]
    return {
        "model_list": models,
        "litellm_settings": {"num_retries": 0, "use_chat_completions_url_for_anthropic_messages": not responses},
        "general_settings": {"master_key": KEY},
    }
