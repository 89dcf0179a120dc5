"""Environment of a command: an allow-list, so that a new secret is left out by default (FAULTS 3.6)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from tools.known_secrets import SECRETS

_ALLOWED = """
PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TMP TEMP PWD HOSTNAME
XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_DATA_DIRS XDG_CONFIG_DIRS
SSH_AUTH_SOCK GNUPGHOME DISPLAY WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS
HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO
VIRTUAL_ENV PYENV_ROOT PYENV_VERSION PYTHONPATH PYTHONHOME PYTHONUTF8 CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_EXE
UV_CACHE_DIR UV_PYTHON UV_PROJECT_ENVIRONMENT PIP_CACHE_DIR POETRY_HOME PIPX_HOME
GOPATH GOROOT GOBIN GOPROXY GOFLAGS GOMODCACHE CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS
NVM_DIR NVM_BIN NODE_PATH NODE_ENV NPM_CONFIG_PREFIX PNPM_HOME BUN_INSTALL DENO_DIR VOLTA_HOME FNM_DIR
JAVA_HOME JDK_HOME MAVEN_HOME M2_HOME GRADLE_HOME GRADLE_USER_HOME KOTLIN_HOME SDKMAN_DIR ANDROID_HOME
ANDROID_SDK_ROOT RBENV_ROOT GEM_HOME GEM_PATH BUNDLE_PATH RVM_PATH PERL5LIB COMPOSER_HOME DOTNET_ROOT
OPAMROOT OPAM_SWITCH_PREFIX GHCUP_INSTALL_BASE_PREFIX STACK_ROOT MIX_HOME HEX_HOME JULIA_DEPOT_PATH
ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY
NIX_PATH NIX_PROFILES NIX_SSL_CERT_FILE IN_NIX_SHELL LOCALE_ARCHIVE DIRENV_DIR
CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LD_LIBRARY_PATH DYLD_LIBRARY_PATH LIBRARY_PATH CPATH PKG_CONFIG_PATH
CMAKE_PREFIX_PATH MAKEFLAGS CUDA_HOME CUDA_PATH CUDA_VISIBLE_DEVICES INFOPATH MANPATH
DOCKER_HOST DOCKER_CONFIG DOCKER_CONTEXT KUBECONFIG WSL_DISTRO_NAME WSL_INTEROP
"""
ALLOWED = frozenset(_ALLOWED.split())
ALLOWED_PREFIXES = ("LC_",)
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|^ANTHROPIC|^OPENAI|^AWS_|^AZURE_|^PHOENIX_", re.IGNORECASE)
URL_PASSWORD = re.compile(r"://[^/@\s:]*+:[^/@\s]++@")
"""A proxy or index address with a password in it is a secret under an innocent name."""
KEY_NAMES = re.compile(r"_(API_KEY|AUTH_TOKEN)$", re.IGNORECASE)
"""Keys of model services, which no program but Phoenix needs."""
SEARCH_PATHS = frozenset({
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "PKG_CONFIG_PATH",
    "CMAKE_PREFIX_PATH",
    "PYTHONPATH",
    "NODE_PATH",
    "PERL5LIB",
    "GEM_PATH",
    "GOPATH",
    "XDG_DATA_DIRS",
    "XDG_CONFIG_DIRS",
})
"""Lists of folders that programs or libraries are loaded from; an empty entry means the working directory."""
NO_EDITOR = "sh -c 'echo no editor here: give the text with -m or -F, or set GIT_EDITOR=true >&2; exit 1'"
FIXED = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": NO_EDITOR,
    "EDITOR": NO_EDITOR,
    "VISUAL": NO_EDITOR,
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",
}
"""Variables that keep programs from waiting for a key (FAULTS 11-13); an editor fails with a reason."""
TERMINAL_TYPE = "xterm-256color"


_UNSANDBOXED_SERVICES = """
DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO GNUPGHOME DISPLAY WAYLAND_DISPLAY
XAUTHORITY TMUX STY DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG KUBECONFIG WSL_INTEROP EMACS_SOCKET_NAME NVIM
VSCODE_IPC_HOOK_CLI PULSE_SERVER
"""
UNSANDBOXED_SERVICES = frozenset(_UNSANDBOXED_SERVICES.split())
"""Left out in a sandbox: each leads to a daemon that runs programs outside of it, or to keys."""

USERS_PATH: Final = "PHOENIX_USERS_PATH"
"""Variable with the `PATH` that Phoenix was started with: its own loses folders of agents at start."""


def scrub_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment of a command: harmless variables of `environment`, and the settings that every command runs under."""
    kept = {name: value for name, value in environment.items() if _is_harmless(name, value)}
    if "PATH" in kept:
        kept["PATH"] = users_path(environment)
    return without_relative_entries(kept) | FIXED


def in_terminal(environment: Mapping[str, str]) -> dict[str, str]:
    """The scrubbed environment of a program that has a terminal of its own, with colours."""
    return {name: value for name, value in environment.items() if name != "NO_COLOR"} | {"TERM": TERMINAL_TYPE}


def _is_harmless(name: str, value: str) -> bool:
    if name not in ALLOWED and not name.startswith(ALLOWED_PREFIXES):
        return False
    return not is_secret(name, value)


def is_secret(name: str, value: str) -> bool:
    """True for a variable named as a secret, by its form or in the settings, or with a password in its address."""
    return bool(SECRET.search(name) or URL_PASSWORD.search(value)) or SECRETS.has_name(name)


def users_path(environment: Mapping[str, str] = os.environ) -> str:
    """The `PATH` of the user's shell, for commands in a sandbox."""
    return environment.get(USERS_PATH) or environment.get("PATH", os.defpath)


def absolute_entries(value: str) -> str:
    """A list of folders without its empty and relative entries."""
    return os.pathsep.join(entry for entry in value.split(os.pathsep) if entry.startswith("/"))


def without_relative_entries(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with absolute folders alone in every search path; one that is left empty goes."""
    kept = {name: absolute_entries(value) if name in SEARCH_PATHS else value for name, value in environment.items()}
    return {name: value for name, value in kept.items() if value or name not in SEARCH_PATHS}
