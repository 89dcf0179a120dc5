"""Files in Phoenix's own folder: settings, keymap, modes, whole files, kept comments."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.permissions.rules import KeptRule
from phoenix_tui.config.credentials import Credentials, load_credentials, save_key
from phoenix_tui.config.load import Layer, environment_layer, flag_layer, merge, parse_layer, set_value, user_layer
from phoenix_tui.config.paths import find_paths
from phoenix_tui.config.provider_tables import admits
from phoenix_tui.config.rules import RuleFile
from phoenix_tui.config.settings import (
    KEYS,
    LEAST_MEGABYTES,
    ConfigError,
    ProviderSettings,
    WebSettings,
    in_words,
    megabytes,
)
from phoenix_tui.features.service_interfaces import Health
from phoenix_tui.keys.keymap_file import KeymapError, read_keymap
from phoenix_tui.wiring.backend import search_findings, search_service
from tools.files.own_files import write_file
from tools.web.search_services import ConfiguredSearch


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.usefixtures("umask")
def test_folders_are_0700_and_files_0600_whatever_the_umask(tmp_path: Path) -> None:
    paths = find_paths({"PHOENIX_HOME": str(tmp_path / "home")})
    paths.make()
    write_file(paths.config_file, "x = 1\n")
    assert mode(paths.config) == 0o700
    assert mode(paths.config_file) == 0o600


def test_without_phoenix_home_the_platform_folders_are_used() -> None:
    paths = find_paths({})
    assert {paths.config.name, paths.data.name, paths.state.name} == {"phoenix"}
    assert paths.config != paths.data


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.mkdir()
    (path / "child").touch()
    with pytest.raises(OSError, match="directory"):
        write_file(path, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.toml"]


def test_setting_a_value_keeps_comments_and_order(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('# mine\nmodel = "a/b"  # why\ntheme = "x"\n')
    set_value(path, "model", "c/d")
    assert path.read_text() == '# mine\nmodel = "c/d"  # why\ntheme = "x"\n'
    set_value(path, "max_turns", 4)
    assert user_layer(path).values == {"model": "c/d", "theme": "x", "max_turns": 4}


def test_setting_a_key_stands_above_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[providers.x]\nbase_url = 'http://x'\n")
    set_value(path, "model", "x/y")
    assert user_layer(path).values == {"model": "x/y"}
    assert [provider.name for provider in user_layer(path).providers] == ["x"]


def test_a_wrong_value_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    with pytest.raises(ConfigError, match="must be one of"):
        set_value(path, "sandbox", "none")
    assert not path.exists()


def test_a_key_comes_from_the_environment_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "credentials.toml"
    save_key(path, "anthropic", "stored-1")
    save_key(path, "my-lab", "stored-2")
    assert mode(path) == 0o600
    credentials = load_credentials(path, {"ANTHROPIC_API_KEY": "from-env"})
    assert credentials.key("anthropic") == "from-env"
    assert credentials.key("my-lab") == "stored-2"
    assert credentials.key("openai") == ""
    assert credentials.source("anthropic") == "ANTHROPIC_API_KEY"
    assert credentials.source("my-lab") == "credentials.toml"
    assert set(credentials.secrets()) == {"from-env", "stored-1", "stored-2"}
    assert "stored-1" not in repr(credentials)


def test_a_readable_credentials_file_is_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "credentials.toml"
    path.write_text('[openai]\napi_key = "k"\n')
    path.chmod(0o644)
    assert load_credentials(path, {}).key("openai") == "k"
    assert mode(path) == 0o600


def test_a_broken_credentials_file_is_named_without_its_content(tmp_path: Path) -> None:
    path = tmp_path / "credentials.toml"
    path.write_text('[openai]\nkey = "sk-secret"\n')
    with pytest.raises(ConfigError) as caught:
        load_credentials(path, {})
    assert f"{path}:1: [openai] must hold api_key" in str(caught.value)
    assert "sk-secret" not in str(caught.value)


def test_rules_are_kept_once_and_seen_by_every_process(tmp_path: Path) -> None:
    first, second = RuleFile(tmp_path / "rules.toml"), RuleFile(tmp_path / "rules.toml")
    assert first.rules() == ()
    first.add(KeptRule("bash(make test*)"))
    first.add(KeptRule('bash(echo "a\\b" \x7f ü)'))
    first.add(KeptRule("bash(make test*)"))
    assert [rule.text for rule in second.rules()] == ["bash(make test*)", 'bash(echo "a\\b" \x7f ü)']
    assert mode(second.path) == 0o600


def test_a_broken_rules_file_allows_nothing_and_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("allow = 3\n")
    assert RuleFile(path).rules() == ()
    with pytest.raises(OSError, match="must be a list"):
        RuleFile(path).add(KeptRule("bash(ls)"))
    assert path.read_text() == "allow = 3\n"


def test_rules_are_kept_per_project_and_a_person_can_read_the_file(tmp_path: Path) -> None:
    file = RuleFile(tmp_path / "rules.toml")
    kept = (
        KeptRule("bash(ls*)", 1_763_000_000.0),
        KeptRule("bash(make test)", project='/work/a "b"'),
        KeptRule("bash(make test)", 1_763_000_000.0, "/work/c"),
    )
    for rule in kept:
        file.add(rule)
    assert file.rules() == kept
    assert file.path.read_text() == (
        "# Tool calls that run without asking, in every project and, below, by project.\n"
        'allow = [\n  "bash(ls*)",\n]\n\n[since]\n"bash(ls*)" = 2025-11-13T02:13:20Z\n'
        '\n[projects."/work/a \\"b\\""]\nallow = [\n  "bash(make test)",\n]\n'
        '\n[projects."/work/c"]\nallow = [\n  "bash(make test)",\n]\n'
        '\n[projects."/work/c".since]\n"bash(make test)" = 2025-11-13T02:13:20Z\n'
    )
    file.remove(KeptRule("bash(make test)", project="/work/c"))
    assert file.rules() == kept[:2]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("projects = 3\n", "'projects' must be tables"),
        ("[projects.a]\nallow = []\n", "must be a table with the absolute path of a folder"),
        ('[projects."/a"]\nallow = 3\n', "'allow' must be a list of texts"),
        ('[projects."/a"]\nalow = []\n', "'alow' is unknown"),
        ("since = 3\n", "'since' must be a table of dates"),
        ('[projects]\n"/a" = 3\n', "must be a table"),
    ],
)
def test_nonsense_in_the_rules_file_is_named_and_costs_no_rule(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('allow = ["bash(ls*)"]\n' + text)
    file = RuleFile(path)
    assert [rule.text for rule in file.rules()] == ["bash(ls*)"]
    assert sentence in file.trouble() and file.trouble().endswith(".")
    before = path.read_text()
    with pytest.raises(OSError, match=r"must be|unknown"):
        file.add(KeptRule("bash(cat*)"))
    with pytest.raises(OSError, match=r"must be|unknown"):
        file.remove(KeptRule("bash(ls*)"))
    assert path.read_text() == before


def test_a_rules_file_that_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rules.toml")
    assert RuleFile(tmp_path / "rules.toml").rules() == ()
    assert "not a readable file" in RuleFile(tmp_path / "rules.toml").trouble()


PATH = Path("/home/u/config.toml")


def layer(text: str, *, project: bool = False) -> Layer:
    return parse_layer(text, PATH, project=project)


def test_a_flag_beats_the_environment_which_beats_the_user_who_beats_the_default() -> None:
    user = layer('model = "a/user"\ntimeout = 5\nmax_turns = 3\n')
    environment = environment_layer({"PHOENIX_MODEL": "a/env", "PHOENIX_TIMEOUT": "6", "PHOENIX_HOME": "/x"})
    settings = merge(user, Layer(), environment, flag_layer({"model": "a/flag", "timeout": None}))
    assert settings.text("model") == "a/flag"
    assert settings.number("timeout") == 6.0
    assert settings.number("max_turns") == 3
    assert settings.text("sandbox") == "workspace"
    assert settings.sources["model"] == "--model"
    assert settings.sources["timeout"] == "PHOENIX_TIMEOUT"
    assert settings.sources["max_turns"] == f"{PATH}:3"
    assert settings.sources["sandbox"] == "default"


def test_an_unknown_key_names_file_line_key_and_what_is_known() -> None:
    with pytest.raises(
        ConfigError, match=r"/home/u/config\.toml:2: unknown key 'modell'\. Valid keys are model, profile"
    ):
        layer('theme = "x"\nmodell = "a/b"\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_turns = true", "config.toml:1: 'max_turns' must be a whole number, 0 for no limit, not True."),
        ("max_agents = 0", "config.toml:1: 'max_agents' must be a whole number from 1 to 32, not 0."),
        ("agent_depth = 2", "must be a whole number from 0 to 1 (sub-agents cannot start sub-agents), not 2."),
        ("agent_turns = 251", "config.toml:1: 'agent_turns' must be a whole number from 1 to 250, not 251."),
        ("agent_timeout = 1e6", "config.toml:1: 'agent_timeout' must be a number from 1 to 86400, not 1000000.0."),
        ("\nmax_turns = 1.5", "config.toml:2: 'max_turns' must be a whole number, 0 for no limit, not 1.5."),
        ("timeout = -1", "'timeout' must be a number, 0 for no limit, not -1.0."),
        ('sandbox = "none"', "'sandbox' must be one of off, workspace, read-only, not 'none'."),
        ("debug = 1", "'debug' must be true or false, not 1."),
        ("model = [", "is not valid TOML"),
        ("[providers.x]\nbase_url = 'ftp://x'", "config.toml:2: [providers.x] needs 'base_url'"),
        ("[providers.x]\nbase = 'http://x'", "config.toml:2: unknown key 'base' in [providers.x]"),
        (
            "[providers.anthropic]\ntransport = 'carrier'",
            "config.toml:2: 'transport' must be one of http, sdk, not 'carrier'.",
        ),
        (
            "[providers.anthropic]\nbackend = 'azure'",
            "config.toml:2: 'backend' must be one of direct, bedrock, vertex, not 'azure'.",
        ),
        ("[providers.openai]\ntool_protocol = 'xml'", "config.toml:2: 'tool_protocol' must be one of native, json"),
        ("[providers.openai]\nidle_timeout = '9'", "config.toml:2: 'idle_timeout' must be a number"),
        ("[providers.ollama]\n\nprofile = 'me'", "config.toml:3: 'profile' works with kind = 'anthropic' only"),
        ("[providers.anthropic]\nkind = 'openai'", "config.toml:2: 'kind' of [providers.anthropic] is anthropic"),
        ("[providers.x]\nbase_url = 'http://x'\nkind = 'y'", "config.toml:3: 'kind' must be one of openai, anthropic"),
    ],
)
def test_a_wrong_value_names_its_place_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        layer(text)
    assert message in str(caught.value)


def test_the_environment_is_checked_like_the_file() -> None:
    with pytest.raises(ConfigError, match="PHOENIX_PERMISSION_MODE: 'permission_mode' must be one of ask"):
        environment_layer({"PHOENIX_PERMISSION_MODE": "yolo"})
    with pytest.raises(ConfigError, match="PHOENIX_MAX_TURNS: 'max_turns' must be a whole number"):
        environment_layer({"PHOENIX_MAX_TURNS": "many"})
    assert environment_layer({"PHOENIX_DEBUG": "1"}).values == {"debug": True}


@pytest.mark.parametrize(
    ("environment", "source"),
    [
        ({"ACCESSIBLE": "1"}, "ACCESSIBLE"),
        ({"TERM": "dumb"}, "TERM=dumb"),
        ({"TERM": "xterm", "ACCESSIBLE": "0"}, None),
        ({"TERM": "dumb", "PHOENIX_SCREEN_READER": "true"}, "PHOENIX_SCREEN_READER"),
    ],
)
def test_a_terminal_that_can_draw_nothing_gets_lines(environment: dict[str, str], source: str | None) -> None:
    assert environment_layer(environment).sources.get("screen_reader") == source


def test_whoever_wants_a_screen_all_the_same_gets_one() -> None:
    layer = environment_layer({"TERM": "dumb", "PHOENIX_SCREEN_READER": "false"})
    assert layer.values == {"screen_reader": False}


def test_a_project_narrows_mode_and_sandbox_and_widens_nothing() -> None:
    user = layer('permission_mode = "ask"\nsandbox = "workspace"\n')
    narrow = layer('permission_mode = "plan"\nsandbox = "read-only"\n', project=True)
    settings = merge(user, narrow, Layer(), Layer())
    assert (settings.text("permission_mode"), settings.text("sandbox")) == ("plan", "read-only")
    wide = layer('permission_mode = "auto"\nsandbox = "off"\n', project=True)
    settings = merge(user, wide, Layer(), Layer())
    assert (settings.text("permission_mode"), settings.text("sandbox")) == ("ask", "workspace")
    assert settings.notices == (
        f"{PATH}:1: a project or profile can only restrict permission_mode; 'auto' is ignored.",
        f"{PATH}:2: a project or profile can only restrict sandbox; 'off' is ignored.",
    )


@pytest.mark.parametrize("text", ['model = "evil/x"', "[providers.evil]\nbase_url = 'http://evil'", "max_turns = 1"])
def test_a_project_cannot_name_models_or_servers(text: str) -> None:
    with pytest.raises(ConfigError, match="A project can set permission_mode, sandbox"):
        layer(text, project=True)


@pytest.mark.parametrize(
    ("text", "number", "words"),
    [
        ("2048", 2048, "2,048 MB"),
        ('"4 GB"', 4096, "4,096 MB"),
        ('"1.5g"', 1536, "1,536 MB"),
        ('"512MB"', 512, "512 MB"),
        ("0", 0, "no limit"),
        ('"0 GB"', 0, "no limit"),
        ('"auto"', None, "a quarter of the machine's"),
    ],
)
def test_a_size_of_memory_is_a_number_of_megabytes_or_has_its_unit(text: str, number: int | None, words: str) -> None:
    value = layer(f"memory_limit = {text}\n").values["memory_limit"]
    assert megabytes(str(value)) == number
    assert in_words("memory_limit", value) == words


@pytest.mark.parametrize("text", ["100", "-1", "true", "1.5", '"4 TB"', '"much"', '"4 GB GB"', '""', '"٤ GB"', "1e99"])
def test_what_is_no_size_of_memory_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(ConfigError, match=r":1: 'memory_limit' must be auto, 0 for no limit, or at least 256 \(MB\)"):
        layer(f"memory_limit = {text}\n")


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_none(text: str) -> None:
    assert (number := megabytes(text)) is None or number == 0 or number >= LEAST_MEGABYTES


def test_added_providers_are_read() -> None:
    text = "[providers.groq]\nbase_url = 'https://api.groq.com/openai/v1'\napi_key_env = 'GROQ'\n"
    assert layer(text).providers == (ProviderSettings("groq", "https://api.groq.com/openai/v1", "openai", "GROQ"),)


def test_a_missing_file_is_an_empty_layer(tmp_path: Path) -> None:
    assert user_layer(tmp_path / "config.toml") == Layer()


def test_a_value_is_said_in_words_and_no_limit_is_no_zero() -> None:
    assert [in_words("max_turns", 0), in_words("timeout", 90.0), in_words("mouse", False)] == [
        "no limit",
        "90 seconds",
        "off",
    ]
    unsaid = {name for name, key in KEYS.items() if in_words(name, key.default) in {"", "none", "0"}}
    assert unsaid == set()


def test_an_unknown_guard_warns_and_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('model = "a/b"\ninput_guard = "bogus"\n')
    settings = merge(user_layer(file), Layer(), Layer(), Layer())
    assert settings.text("input_guard") == "warn"
    assert settings.sources["input_guard"] == f"{file}:2"
    assert settings.notices == (f"{file}:2: 'input_guard' must be one of off, log, warn, block; 'warn' is used.",)
    told = merge(Layer(), Layer(), environment_layer({"PHOENIX_INPUT_GUARD": "loud"}), Layer())
    assert (told.text("input_guard"), len(told.notices)) == ("warn", 1)
    assert merge(Layer(), Layer(), environment_layer({"PHOENIX_INPUT_GUARD": "block"}), Layer()).notices == ()


def test_a_guard_that_is_no_text_is_a_fault_like_any_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be one of off, log, warn, block"):
        parse_layer("input_guard = 3", tmp_path / "config.toml", project=False)


def test_a_project_cannot_change_the_guard(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown key 'input_guard'"):
        parse_layer('input_guard = "off"', tmp_path / "config.toml", project=True)


def test_hooks_stand_in_the_users_file_alone(tmp_path: Path) -> None:
    text = '[[hooks.Stop]]\nhooks = [{ type = "command", command = "true" }]\n'
    assert parse_layer(text, tmp_path / "config.toml", project=False).values == {}
    with pytest.raises(ConfigError, match="unknown key 'hooks'"):
        parse_layer(text, tmp_path / "config.toml", project=True)


FILE = Path("/home/u/config.toml")


def web(text: str) -> WebSettings | None:
    return parse_layer(text, FILE, project=False).web


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        (
            '[web]\nsearch = "brave"',
            WebSettings("brave", "https://api.search.brave.com/res/v1/web/search", "BRAVE_API_KEY"),
        ),
        (
            '[web]\nsearch = "tavily"\nkey_env = "MY_API_KEY"',
            WebSettings("tavily", "https://api.tavily.com/search", "MY_API_KEY"),
        ),
        (
            '[web]\nsearch = "searxng"\nurl = "http://localhost:8888"',
            WebSettings("searxng", "http://localhost:8888/search"),
        ),
        (
            '[web]\nsearch = "searxng"\nurl = "https://s.example.com/my/search"',
            WebSettings("searxng", "https://s.example.com/my/search"),
        ),
        (
            '[web]\nsearch = "brave"\nurl = "http://127.0.0.1:1/x"',
            WebSettings("brave", "http://127.0.0.1:1/x", "BRAVE_API_KEY"),
        ),
    ],
)
def test_a_table_is_read(text: str, expected: WebSettings | None) -> None:
    assert web(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("web = 1", "config.toml:1: 'web' must be a table"),
        ("[web]", "config.toml:1: .web. needs 'search', one of brave, searxng, tavily"),
        ('[web]\nsearch = "google"', "config.toml:2: .web. needs 'search'"),
        ('[web]\nsearch = "searxng"', "config.toml:1: 'url' in .web. must be the http"),
        ('[web]\nsearch = "searxng"\nurl = "ftp://x"', "config.toml:3: 'url' in .web. must be"),
        ('[web]\nsearch = "searxng"\nurl = "http://["', "config.toml:3: 'url' in .web. must be"),
        ('[web]\nsearch = "searxng"\nurl = "http://x:99999"', "config.toml:3: 'url' in .web. must be"),
        ('[web]\nsearch = "searxng"\nurl = "http://u:p@x"', "config.toml:3: 'url' in .web. cannot hold"),
        ('[web]\nsearch = "brave"\nurl = "http://far.example.com"', "config.toml:3: the key of brave is not sent"),
        ('[web]\nsearch = "searxng"\nurl = "http://x"\nkey_env = "A"', "config.toml:4: searxng takes no key"),
        ('[web]\nsearch = "brave"\nkeys = "A"', "config.toml:3: unknown key 'keys' in .web."),
        ("[web]\nsearch = 5", "config.toml:2: 'search' in .web. must be text"),
        ('[web]\nsearch = "brave"\nkey_env = "A\\u001b"', "config.toml:3: 'key_env' in .web. must be text on one line"),
    ],
)
def test_a_wrong_table_names_file_line_and_fix(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        web(text)


def test_a_project_cannot_name_a_service() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'web'\. A project can set"):
        parse_layer('[web]\nsearch = "searxng"\nurl = "http://evil.example"', FILE, project=True)


def test_the_table_is_part_of_the_settings() -> None:
    user = parse_layer('[web]\nsearch = "brave"', FILE, project=False)
    settings = merge(user, Layer(), Layer(), Layer())
    assert settings.web == user.web


def test_a_service_needs_its_key_and_never_shows_it() -> None:
    wanted = WebSettings("brave", "https://api.example.com", "BRAVE_API_KEY")
    without, with_key = Credentials({}, {}), Credentials({"BRAVE_API_KEY": "sk-brave"}, {})
    assert search_service(wanted, without) is None
    assert search_findings(wanted, without)[0].text == "brave has no key; set BRAVE_API_KEY"
    assert search_findings(wanted, without)[0].health is Health.NOTE
    service = search_service(wanted, with_key)
    assert isinstance(service, ConfiguredSearch)
    assert service.key == "sk-brave"
    assert "sk-brave" not in repr(service)
    assert "sk-brave" in with_key.secrets()
    stored = search_service(wanted, Credentials({}, {"brave": "sk-stored"}))
    assert isinstance(stored, ConfiguredSearch)
    assert stored.key == "sk-stored"


def test_searxng_needs_none() -> None:
    wanted = WebSettings("searxng", "http://localhost:8888/search")
    assert isinstance(search_service(wanted, Credentials({}, {})), ConfiguredSearch)


def parsed(value: str) -> tuple[str, ...]:
    text = f'[providers.work]\nbase_url = "https://gateway.example/v1"\nmodels = {value}\n'
    return parse_layer(text, Path("config.toml"), project=False).providers[0].models


@pytest.mark.parametrize(
    ("patterns", "model", "shown"),
    [
        ((), "anything", True),
        (("z-ai/*",), "z-ai/glm-4.7", True),
        (("z-ai/*",), "other/glm", False),
        (("z-ai/*", "!*:free"), "z-ai/glm:free", False),
        (("!*:free",), "z-ai/glm", True),
        (("!*:free", "z-ai/*"), "z-ai/glm:free", False),
        (("Z-AI/GLM-4.?",), "z-ai/glm-4.7", True),
        (("gpt-[45]*",), "gpt-5.2", True),
        (("[",), "[", True),
    ],
)
def test_a_pattern_admits_and_one_with_a_mark_leaves_out(patterns: tuple[str, ...], model: str, shown: bool) -> None:
    assert admits(patterns, model) is shown


def test_a_pattern_of_many_stars_ends_at_once() -> None:
    assert not admits(("*a" * 90 + "*b",), "a" * 10_000)


def test_patterns_are_read_from_the_table_of_a_provider() -> None:
    assert parsed('["z-ai/*", "!*:free"]') == ("z-ai/*", "!*:free")
    assert parsed("[]") == ()


LONG, MANY = f'["{"x" * 201}"]', "[" + '"a",' * 101 + "]"


@pytest.mark.parametrize("value", ['"z-ai/*"', "5", "[5]", '[""]', '["!"]', LONG, MANY])
def test_what_is_no_list_of_patterns_is_refused_with_an_example(value: str) -> None:
    with pytest.raises(ConfigError, match=r"config.toml:3: 'models' must be a list of at most 100 patterns, such as"):
        parsed(value)


def read(folder: Path, text: str) -> dict[str, str]:
    path = folder / "keymap.toml"
    path.write_text(text)
    return read_keymap(path)


@pytest.mark.parametrize(
    ("written", "bound"),
    [
        ("f9", "f9"),
        ("Ctrl+X, f8", "ctrl+x,f8"),
        ("alt+;", "alt+semicolon"),
        ("ctrl+é", "ctrl+é"),
        ("none", "none"),
        ("shift+f3", "shift+f3"),
    ],
)
def test_keys_are_read_as_people_write_them(tmp_path: Path, written: str, bound: str) -> None:
    assert read(tmp_path, f'new = "{written}"\n') == {"new": bound}


def test_two_actions_may_change_places(tmp_path: Path) -> None:
    assert read(tmp_path, 'new = "ctrl+l"\nlist = "ctrl+n"\n') == {"new": "ctrl+l", "list": "ctrl+n"}


def test_no_file_changes_nothing(tmp_path: Path) -> None:
    assert read_keymap(tmp_path / "keymap.toml") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('# mine\nnwe = "f9"\n', 'keymap.toml:2: "nwe" is not an action. Similar: new'),
        ("new = 3\n", 'keymap.toml:1: "new" must be text such as'),
        ('new = "ctrl+foo"\n', 'keymap.toml:1: "ctrl+foo" is not a key. Keys are letters'),
        ('new = "ctrl+q"\n', 'keymap.toml:1: Ctrl+Q is used for both "quit" and "new"'),
        ('new = "f9\n', "is not valid TOML"),
    ],
)
def test_a_broken_keymap_names_file_line_and_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(KeymapError) as error:
        read(tmp_path, text)
    assert expected in str(error.value)
