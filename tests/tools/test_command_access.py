"""Access that a command is known to need beyond the sandbox, as people write commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.command_access import command_access
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
