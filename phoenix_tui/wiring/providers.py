"""All providers, each created on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from msgspec import Struct, convert, field

from engine.machine.messages import Usage
from engine.ports import ModelInfo, Provider, ProviderError
from engine.providers.catalogue import load_now, runs_free, with_list_price
from engine.providers.catalogue import price as price_of
from engine.providers.http_transport import is_loopback
from phoenix_tui.config.credentials import Credentials, variable_of
from phoenix_tui.config.presets import PRESETS, Preset
from phoenix_tui.config.provider_tables import admits, expand_table
from phoenix_tui.config.settings import ConfigError, ProviderSettings, Settings
from phoenix_tui.models.choice import DEFAULT_MODELS
from phoenix_tui.models.offers import KeptLists, ProviderOffer, ProviderState
from phoenix_tui.models.servers import ServerKind, endpoints_of, ollama_base_url
from tools.contract import ProcessRunner
from tools.known_secrets import SecretFields

if TYPE_CHECKING:
    from engine.providers.local.provider import ModelFolder

DEFAULT_OPENAI_MODEL = "gpt-5.2"
"""Default for OpenAI's own service, whose list of models has no useful order."""
LOCAL_SERVERS = {one.kind.value: one.base_url for one in endpoints_of({})}
"""Servers on this machine and where they listen by default."""

OLD_LIST = "no answer now, this is its last list"
"""Note of a list that stands in for a server that is down."""

Factory = Callable[[], Provider]


class ProviderRegistry(SecretFields, Struct, eq=False):
    """Implements `engine.ports.Providers`."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset({"environment"})

    settings: Settings
    credentials: Credentials
    environment: Mapping[str, str]
    embedded: Factory | None = None
    """Makes the provider of installed models; None leaves it out."""
    strict_guide: bool = False
    """True when the guide refuses requests that it does not understand, as headless runs need."""
    lists: KeptLists = field(default_factory=KeptLists)
    """Lists of models of known services."""
    state: Path | None = None
    """Folder of what providers remember; None keeps it in memory."""
    _made: dict[str, Provider] = {}

    def resolve(self, reference: str) -> tuple[Provider, str]:
        """The provider and the model name; a bare provider means its default model.

        Raises:
            ProviderError: unknown provider, or no model named where there is no default.
        """
        name, _, model = reference.partition("/")
        if name not in self._made:
            factory = self._factories().get(name)
            if factory is None:
                raise _invalid(
                    f"There is no provider '{name}'. The providers are {', '.join(self.names())}; "
                    "add another as [providers.NAME] in config.toml."
                )
            try:
                self._made[name] = factory()
            except ValueError as error:
                raise _invalid(f"The address of {name} is not valid: {error}.") from error
        model = model or self.defaults().get(name, "")
        if not model:
            raise _invalid(f"'{reference}' names no model; write {name}/MODEL. `phoenix models` lists them.")
        return self._made[name], model

    def defaults(self) -> dict[str, str]:
        """Models for bare provider names, if their server need not be asked (CONTRACT 5)."""
        own = {added.name for added in self.settings.providers if added.service is None}
        known = {name: one.default_model for name, one in PRESETS.items() if one.default_model and name not in own}
        models = known | DEFAULT_MODELS | {"demo": "guide"}
        return models if self.environment.get("OPENAI_BASE_URL") else models | {"openai": DEFAULT_OPENAI_MODEL}

    def full_reference(self, reference: str) -> str:
        """PROVIDER/MODEL of a reference that may be a bare provider.

        Raises:
            ProviderError: as `resolve`.
        """
        provider, model = self.resolve(reference)
        return f"{provider.name}/{model}"

    def price(self, reference: str, usage: Usage) -> float | None:
        """US dollars of a reply by the model's name; None where the price is unknown.

        For threads: the first name that the own table does not have costs 0.25 s.
        """
        try:
            provider, model = self.resolve(reference)
        except ProviderError:
            return None
        local = provider.describe(model).local
        if not (local and runs_free(provider.name, model)):
            load_now(model)
        return price_of(provider.name, model, usage, local=local)

    def describe(self, reference: str) -> ModelInfo | None:
        """Describe a model without a request; None for an unknown provider."""
        try:
            provider, model = self.resolve(reference)
        except ProviderError:
            return None
        return provider.describe(model)

    def names(self) -> list[str]:
        """The providers there are."""
        return list(self._factories())

    async def models(self) -> list[ModelInfo]:
        """The models of every provider that is set up and answers."""
        return [model for offer in await self.offers() for model in offer.models]

    async def offers(self, only: str = "", *, refresh: bool = False) -> list[ProviderOffer]:
        """Every provider with its state and models; `only` one of them; `refresh` asks for lists that are kept."""
        names = [name for name in self.names() if only in {"", name}]
        return list(await asyncio.gather(*(self.offer(name, refresh=refresh) for name in names)))

    def find_known_offer(self, name: str) -> ProviderOffer:
        """A provider with the models of its kept list, however old, without a request and without prices of lists."""
        if not self._is_set_up(name):
            return ProviderOffer(name, ProviderState.NO_KEY, f"set {self._variable(name)}")
        kept = self.lists.of(name, self._address_of(name), stale=True)
        if kept is None:
            return ProviderOffer(name, ProviderState.ASKING, is_expected=self._is_expected(name))
        return self._ready(name, kept)

    async def offer(self, name: str, *, refresh: bool = False) -> ProviderOffer:
        """A provider with its state and models; asks it unless its list is kept and `refresh` is false."""
        if not self._is_set_up(name):
            return ProviderOffer(name, ProviderState.NO_KEY, f"set {self._variable(name)}")
        try:
            models, note = await self._list_models(name, refresh=refresh)
        except ConfigError as error:  # its key cannot be read
            return ProviderOffer(name, ProviderState.NO_KEY, str(error))
        except ProviderError as error:
            state = ProviderState.NO_KEY if error.kind == "auth" else ProviderState.UNREACHABLE
            return ProviderOffer(name, state, error.message, is_expected=self._is_expected(name))
        priced = await asyncio.to_thread(lambda: [with_list_price(one) for one in models])
        return self._ready(name, priced, note)

    def _ready(self, name: str, models: Sequence[ModelInfo], note: str = "") -> ProviderOffer:
        """The models that the user's filter of this provider admits."""
        found = tuple(one for one in models if admits(self._settings_of(name).models, one.name))
        source = self.credentials.source(name, self._variable(name))
        hidden = f"its filter in config.toml hides all {len(models)}" if models and not found else ""
        words = ", ".join(filter(None, (f"key from {source}" if source else "", note, hidden)))
        return ProviderOffer(name, ProviderState.READY, words, found, is_expected=self._is_expected(name))

    async def _list_models(self, name: str, *, refresh: bool) -> tuple[Sequence[ModelInfo], str]:
        """The models of a provider, and a note where they are those of an earlier answer."""
        provider, _ = self.resolve(f"{name}/any")
        address = self._address_of(name)
        is_shared = self._settings_of(name).service is not None
        if is_shared and not refresh and (kept := self.lists.of(name, address)) is not None:
            return kept, ""
        try:
            models = await provider.models()
        except ProviderError as error:
            old = self.lists.of(name, address, stale=True) if error.retryable else None
            if old is None:
                raise
            return old, OLD_LIST
        if models and not any(model.local for model in models):
            await asyncio.to_thread(self.lists.keep, name, address, models)
        return models, ""

    def _settings_of(self, name: str) -> ProviderSettings:
        """Settings of a provider; those without any where the user wrote none."""
        return next((one for one in self.settings.providers if one.name == name), ProviderSettings(name))

    def _is_expected(self, name: str) -> bool:
        return name not in {*LOCAL_SERVERS, "local"} or any(added.name == name for added in self.settings.providers)

    def _variable(self, name: str) -> str:
        """The variable that holds the key of a provider."""
        added = self._settings_of(name)
        preset = added.service
        return added.api_key_env or (self.credentials.variable(preset) if preset is not None else variable_of(name))

    def _address_of(self, name: str) -> str:
        """Address under which a list is kept: that of the settings or the service, a variable, or the name itself."""
        added = self._settings_of(name)
        service = added.service.base_url if added.service is not None else ""
        return added.base_url or service or self.environment.get(f"{name.upper()}_BASE_URL") or name

    async def forget(self, name: str) -> None:
        """Create the provider again with its next use: its key has changed."""
        provider = self._made.pop(name, None)
        if provider is not None:
            await provider.close()

    async def close(self) -> None:
        """Close all that were made."""
        for provider in self._made.values():
            await provider.close()
        self._made.clear()

    def _is_set_up(self, name: str) -> bool:
        if name in {"anthropic", "openai"}:
            named = any(added.name == name for added in self.settings.providers)
            return named or bool(self.credentials.source(name)) or f"{name.upper()}_BASE_URL" in self.environment
        if name in PRESETS and not any(added.name == name for added in self.settings.providers):
            return any(preset.name == name for preset in self.credentials.list_available())
        return True

    def _factories(self) -> dict[str, Factory]:
        factories: dict[str, Factory] = {"anthropic": partial(self._claude, ProviderSettings("anthropic"))}
        for name in ("openai", *LOCAL_SERVERS):
            factories[name] = partial(self._compatible, ProviderSettings(name))
        if self.embedded is not None:
            factories["local"] = self.embedded
        factories["demo"] = self._guide
        for name in PRESETS:
            factories[name] = partial(self._compatible, ProviderSettings(name))
        for added in self.settings.providers:
            factories[added.name] = partial(self._claude if added.kind == "anthropic" else self._compatible, added)
        return factories

    def _claude(self, wanted: ProviderSettings) -> Provider:
        from engine.providers.anthropic.anthropic_settings import DEFAULT_BASE_URL, AnthropicSettings  # noqa: PLC0415 - as above
        from engine.providers.anthropic.client import FILE, AnthropicProvider  # noqa: PLC0415 - as above
        from engine.providers.http import IDLE_TIMEOUT  # noqa: PLC0415 - as above

        built_in = wanted.name == "anthropic"
        headers, hidden = self._expand_table(wanted.name, "headers", wanted.headers)
        base_url = wanted.base_url or self.environment.get("ANTHROPIC_BASE_URL") or DEFAULT_BASE_URL
        key = self.credentials.key(wanted.name, wanted.api_key_env)
        auth_token = self.environment.get("ANTHROPIC_AUTH_TOKEN", "") if built_in else ""
        _check_encrypted(wanted.name, base_url, key, auth_token, *hidden)
        return AnthropicProvider(
            AnthropicSettings(
                api_key=key,
                name=wanted.name,
                key_variable=wanted.api_key_env or ("ANTHROPIC_API_KEY" if built_in else ""),
                base_url=base_url,
                auth_token=auth_token,
                transport=wanted.transport,
                backend=wanted.backend,
                profile=wanted.profile,
                idle_timeout=wanted.idle_timeout or IDLE_TIMEOUT,
                thinking_budget=wanted.thinking_budget,
                max_tokens=wanted.max_tokens,
                tokens_per_minute=wanted.tokens_per_minute,
                requests_per_minute=wanted.requests_per_minute,
                window=wanted.context_window,
                headers=headers,
                refused_thinking=self.state / FILE if self.state is not None else None,
                secrets=hidden,
            )
        )

    def _compatible(self, wanted: ProviderSettings) -> Provider:
        from engine.providers.openai_compatible.client import OpenAiCompatibleProvider  # noqa: PLC0415 - when asked
        from engine.providers.openai_compatible.dialect import Dialect  # noqa: PLC0415 - as above
        from engine.providers.openai_compatible.openai_settings import (  # noqa: PLC0415 - as above
            OPENAI_BASE_URL,
            OpenAiCompatibleSettings,
        )

        name, variable = wanted.name, wanted.api_key_env
        base_url = wanted.base_url or LOCAL_SERVERS.get(name, "")
        preset = wanted.service
        if preset is not None:
            base_url = base_url or self._address(preset)
            variable = variable or self.credentials.variable(preset)
        if name == ServerKind.OLLAMA:
            base_url = wanted.base_url or ollama_base_url(self.environment)
        if name == "openai":
            base_url = wanted.base_url or self.environment.get("OPENAI_BASE_URL") or OPENAI_BASE_URL
            variable = variable or "OPENAI_API_KEY"
        if not variable and self.environment.get(variable_of(name)):
            variable = variable_of(name)  # a refusal of the key names it
        headers, hidden = self._expand_table(name, "headers", wanted.headers)
        query, more = self._expand_table(name, "query", wanted.query)
        key = self.credentials.key(name, variable if preset is not None else wanted.api_key_env)
        _check_encrypted(name, base_url, key, *hidden, *more)
        return OpenAiCompatibleProvider(
            OpenAiCompatibleSettings(
                name=name,
                base_url=base_url,
                api_key=key,
                key_variable=variable,
                dialect=convert(dict(preset.quirks) if preset is not None else {}, Dialect),
                tool_protocol=wanted.tool_protocol,
                idle_timeout=wanted.idle_timeout,
                window=wanted.context_window,
                max_tokens=wanted.max_tokens,
                tokens_per_minute=wanted.tokens_per_minute,
                requests_per_minute=wanted.requests_per_minute,
                headers=headers,
                query=query,
                extra_body=wanted.extra_body,
                secrets=(*hidden, *more),
            )
        )

    def _address(self, preset: Preset) -> str:
        """The base URL with its variables. Raises ProviderError where one is not set, or makes no address."""
        try:
            found, _ = expand_table({"base_url": preset.base_url}, self.environment, f"The address of {preset.name}")
        except ConfigError as error:
            raise _invalid(str(error)) from error
        if not found["base_url"].startswith(("http://", "https://")):
            raise _invalid(f"The address of {preset.name} must start with http:// or https://, not {preset.base_url}.")
        return found["base_url"].replace("://global-aiplatform.", "://aiplatform.")

    def _expand_table(
        self, provider: str, key: str, table: Mapping[str, str]
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Expand the variables of a table, with names in lower case for headers; also returns the values that no text
        may contain.
        """
        try:
            values, secrets = expand_table(table, self.environment, f"[providers.{provider}] {key}")
        except ConfigError as error:
            raise _invalid(str(error)) from error
        return {name.lower() if key == "headers" else name: value for name, value in values.items()}, tuple(secrets)

    def _guide(self) -> Provider:
        from engine.providers.guide.provider import GuideProvider  # noqa: PLC0415 - only when asked for

        return GuideProvider(strict=self.strict_guide)


def _check_encrypted(provider: str, base_url: str, *secrets: str) -> None:
    """Raise ProviderError where a key would cross the network in plain text, ValueError where this is no address."""
    host = urlsplit(base_url).hostname
    if any(secrets) and base_url.startswith("http://") and not is_loopback(base_url):
        raise _invalid(
            f"The key of {provider} is not sent to {host} without encryption; use an https:// "
            "address, or a tunnel to a port of this machine."
        )


def _invalid(sentence: str) -> ProviderError:
    return ProviderError(sentence, kind="invalid_request", retryable=False)


def make_embedded_factory(models: ModelFolder, runner: ProcessRunner) -> Factory:
    """Build the factory of the provider for the models of this folder."""

    def make() -> Provider:
        from engine.providers.local.provider import LocalProvider  # noqa: PLC0415 - as above
        from engine.providers.local.server import RunnerHost  # noqa: PLC0415 - only when asked for

        return LocalProvider(models, RunnerHost(runner, Path("/")))

    return make


async def why_no_budget(providers: ProviderRegistry, model: str) -> str:
    """Reason why a run with this model cannot be held to a sum of dollars; empty where its price is known."""
    known = await asyncio.to_thread(providers.price, model, Usage(1, 1)) is not None
    return "" if known else f"The price of {model} is unknown, so --max-budget-usd cannot be enforced; use --max-turns."
