"""Access and hosts that a command is known to need beyond the sandbox, as people write commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.command_access import NeededHosts, command_access, find_needed_hosts
from tools.contract import Access

CASES = {
    Access.CONFINED: """
        git status
        git -C sub log --oneline
        git stash
        git commit -m 'curl x; ssh y'
        git config user.name
        git config --get user.email
        git remote -v
        git worktree list
        uv run pytest -q
        uv pip list
        npm test
        npm run build
        yarn build
        make -j4 test
        pytest -q tests
        cargo build --release
        go test ./...
        go build
        python -m pytest
        python3 script.py
        rsync -a a/ b/
        ls -la | grep x
        echo 'unbalanced
        echo "curl"
        pip list
        .venv/bin/pip uninstall -y x
        tsc --noEmit && eslint .
        env FOO=1 make
        sleep 9 & kill $!
        kill $(cat pid)
    """,
    Access.NETWORK: """
        curl -s http://localhost:8000
        FOO=1 timeout 5 curl x
        bash -c 'wget x | sh'
        echo $(curl x)
        echo `curl x`
        for f in a b; do curl $f; done
        if curl x; then echo; fi
        git clone https://example.org/x
        .venv/bin/pip install x
        . .venv/bin/activate && pip install x
        uv sync
        uv pip install x
        npm i
        npm ci
        npm run dev
        npm start
        pnpm run dev:web
        yarn
        npx tsc
        cargo fetch
        go mod tidy
        python -m http.server
        python manage.py runserver
        poetry run flask run
        poetry install
        php -S localhost:8000
        cat x | xargs -n1 curl
    """,
    Access.OUTSIDE: """
        git push origin main
        git fetch
        git clone git@host:x/y
        git config user.name me
        git init
        git remote add x y
        git worktree add ../x
        pip install x
        python3 -m pip install x
        npm i -g x
        cargo install x
        uv tool install x
        docker ps
        docker compose up
        ssh host ls
        scp a host:b
        rsync -a a host:b
        sudo ls
        apt-get install x
        gh pr list
        kubectl get pods
        kill 5
        curl x && sudo ls
        nohup docker run x
        psql -c 'select 1'
        pre-commit install
    """,
}
ROWS = [(line.strip(), access) for access, text in CASES.items() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("command", "access"), ROWS)
def test_a_known_need_is_known_before_the_command_runs(command: str, access: Access) -> None:
    found, reason = command_access(command)
    assert found is access
    assert bool(reason) is (access is not Access.CONFINED)


def test_the_lines_of_a_here_document_are_no_commands() -> None:
    assert command_access("cat > x <<'EOF'\ncurl x\nssh y\nEOF\nls") == (Access.CONFINED, "")
    assert command_access("cat > x <<EOF\ntext\nEOF\ncurl x")[0] is Access.NETWORK


def test_the_widest_need_of_a_command_counts() -> None:
    assert command_access("ls; curl x; ssh y; curl z")[0] is Access.OUTSIDE


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("ls && curl -s x | sh", "curl needs the network"),
        ("git push origin main", "git push needs the network and your stored credentials, which the sandbox hides"),
        ("ssh host ls", "ssh needs the network and your SSH keys, which the sandbox hides"),
        ("docker compose up", "docker compose uses a service outside the sandbox"),
        ("/usr/bin/curl 'a\nb'", "curl needs the network"),
    ],
)
def test_the_reason_names_the_program_that_needs_it(command: str, reason: str) -> None:
    assert command_access(command)[1] == reason


@given(st.text(alphabet="ab $`(){}<>|&;'\"\\\n-=./curlsh", max_size=200))
def test_any_text_has_an_answer(command: str) -> None:
    assert command_access(command)[0] in Access


@pytest.mark.parametrize("part", ["$(", "`", "<<A\n", "bash -c '", "env ", "a=", "( ", "'", "\\", ". "])
def test_a_long_command_of_one_sign_has_an_answer(part: str) -> None:
    assert command_access(part * (8_000 // len(part)))[0] in Access


PYPI = ("pypi.org", "files.pythonhosted.org")


@pytest.mark.parametrize(
    ("command", "hosts"),
    [
        ("curl -sS https://a.example/x?y=https%3A", ("a.example",)),
        ("curl http://a.example:80/ https://b.example:8443/", ("a.example", "b.example:8443")),
        ("curl https://user:pw@a.example/", ("a.example",)),
        ("curl -o x a.example/path", ("a.example",)),
        ("wget 'https://a.example/a b'", ("a.example",)),
        ("git clone https://a.example/x.git", ("a.example",)),
        ("bash -c 'curl https://a.example'", ("a.example",)),
        ("echo $(curl https://a.example)", ("a.example",)),
        ("curl https://$HOST/x", ()),
        ("curl https://2130706433/", ()),
        ("python fetch.py", ()),
        ("cargo fetch", ("index.crates.io", "static.crates.io")),
        ("npm install --registry https://r.example/ x", ("r.example",)),
        ("uv pip install -i https://r.example/simple x", ("r.example",)),
    ],
)
def test_hosts_are_read_from_the_words_of_a_command(tmp_path: Path, command: str, hosts: tuple[str, ...]) -> None:
    assert find_needed_hosts(command, (), tmp_path) == NeededHosts(hosts)


@pytest.mark.parametrize(
    "command",
    [
        "ping a.example", "dig a.example", "nc a.example 80", "curl http://localhost:3000",
        "curl http://127.0.0.1/", "curl http://10.0.0.1/", "curl http://printer.local/", "npm run dev",
        "python -m http.server",
    ],
)  # fmt: skip
def test_what_cannot_use_the_proxy_needs_the_whole_network(tmp_path: Path, command: str) -> None:
    assert find_needed_hosts(command, (), tmp_path) == NeededHosts((), any_host=True)


def test_a_model_names_hosts_or_the_whole_network(tmp_path: Path) -> None:
    assert find_needed_hosts("x", ("B.example", "b.example:8443", "*.c.example"), tmp_path).hosts == (
        "b.example",
        "b.example:8443",
        "*.c.example",
    )
    assert find_needed_hosts("x", ("b.example", "*"), tmp_path) == NeededHosts((), any_host=True)


def test_settings_of_a_package_manager_take_the_place_of_the_usual_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home/.pip").mkdir(parents=True)
    assert find_needed_hosts("npm install", (), tmp_path).hosts == ("registry.npmjs.org",)
    (tmp_path / ".npmrc").write_text("registry=https://npm.example/\n@own:registry = https://own.example/x\n")
    assert find_needed_hosts("npm install", (), tmp_path).hosts == ("npm.example", "own.example")
    assert set(PYPI) <= set(find_needed_hosts(".venv/bin/pip install x", (), tmp_path).hosts)
    (tmp_path / "home/.pip/pip.conf").write_text("[global]\nindex-url = https://pip.example/simple\n")
    assert "pip.example" in find_needed_hosts(".venv/bin/pip install x", (), tmp_path).hosts
    assert not set(PYPI) & set(find_needed_hosts(".venv/bin/pip install x", (), tmp_path).hosts)


def test_a_pipe_in_place_of_settings_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".npmrc")
    assert find_needed_hosts("npm install", (), tmp_path).hosts == ("registry.npmjs.org",)
