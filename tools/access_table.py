"""Programs whose need for the network, or for more than the sandbox gives, is known before they run."""

from __future__ import annotations

from typing import Final

NEEDS_NETWORK: Final = "needs the network"
NEEDS_PORT: Final = "listens on a port for your browser or other programs"
NEEDS_CREDENTIALS: Final = "needs the network and your stored credentials, which the sandbox hides"
NEEDS_KEYS: Final = "needs keys that the sandbox hides"
NEEDS_SSH: Final = "needs the network and your SSH keys, which the sandbox hides"
NEEDS_DAEMON: Final = "uses a service outside the sandbox"
NEEDS_SYSTEM: Final = "changes this machine outside the working directory"
NEEDS_PROCESSES: Final = "acts on processes outside the sandbox"
NEEDS_GIT_CONTROL: Final = "changes git's configuration, which the sandbox protects"
NEEDS_DESKTOP: Final = "opens a program on your desktop"
NEEDS_OWN_SANDBOX: Final = "starts a browser, which cannot set up its own sandbox inside this one"


def _subcommands(text: str) -> dict[str, frozenset[str]]:
    """Read lines of `program: word word …`."""
    lines = (line.partition(":") for line in text.strip().splitlines())
    return {name.strip(): frozenset(words.split()) for name, _, words in lines}


def _programs(text: str) -> frozenset[str]:
    return frozenset(text.split())


NETWORK_PROGRAMS: Final = _programs("""
    curl wget http https xh aria2c nc ncat netcat telnet ping ping6 dig nslookup host traceroute tracepath whois
    ftp lftp mtr iperf3 socat wrk ab hey yt-dlp npx bunx uvx pnpx
""")
DIRECT_PROGRAMS: Final = _programs("""
    nc ncat netcat telnet ping ping6 dig nslookup host traceroute tracepath whois ftp lftp mtr iperf3 socat
""")
"""Programs of these that speak to hosts themselves, and cannot go through a proxy."""
SERVER_PROGRAMS: Final = _programs("""
    uvicorn gunicorn hypercorn daphne waitress-serve vite http-server live-server serve browser-sync nodemon
    webpack-dev-server json-server ngrok cloudflared caddy nginx
""")
OUTSIDE_PROGRAMS: Final = {
    name: reason
    for reason, names in (
        (NEEDS_SSH, "ssh scp sftp mosh autossh sshfs ssh-copy-id"),
        (
            NEEDS_CREDENTIALS,
            "gh glab hub aws gcloud gsutil az doctl heroku vercel netlify flyctl fly wrangler kubectl helm terraform"
            " tofu pulumi ansible ansible-playbook twine op vault sops firebase supabase stripe snyk",
        ),
        (NEEDS_KEYS, "gpg gpg2 pass age ssh-add ssh-keygen security secret-tool keyring"),
        (
            NEEDS_DAEMON,
            "docker docker-compose podman podman-compose nerdctl buildah skopeo colima minikube kind k3d vagrant"
            " virsh systemctl service loginctl busctl dbus-send gdbus psql pg_dump pg_restore createdb dropdb mysql"
            " mysqldump mariadb mongosh redis-cli tmux screen at batch emacsclient adb",
        ),
        (
            NEEDS_SYSTEM,
            "sudo doas su pkexec apt apt-get aptitude dpkg dnf yum rpm pacman yay zypper apk snap flatpak brew port"
            " nix-env useradd usermod passwd visudo mount umount modprobe sysctl ufw iptables crontab chsh rustup nvm"
            " pyenv rbenv asdf mise sdk volta fnm pipx corepack update-alternatives",
        ),
        (
            NEEDS_PROCESSES,
            "pkill killall ps pgrep top htop pstree lsof fuser ss netstat strace gdb lldb py-spy perf",
        ),
        (
            NEEDS_DESKTOP,
            "xdg-open open code cursor subl idea pycharm xclip xsel wl-copy wl-paste pbcopy pbpaste notify-send",
        ),
        (NEEDS_OWN_SANDBOX, "playwright cypress chromium chromium-browser google-chrome firefox"),
    )
    for name in names.split()
}

NETWORK_SUBCOMMANDS: Final = _subcommands("""
    uv: sync add lock
    poetry: install add update lock self
    pdm: install add update lock sync
    pipenv: install update lock sync
    hatch: dep
    conda: install create update search env
    npm: install i ci add update up audit outdated view info exec create init search
    pnpm: install i add update up audit outdated dlx create fetch
    yarn: install add upgrade up audit dlx create outdated
    bun: install i add update x create
    deno: install add cache
    cargo: fetch update add search audit outdated generate-lockfile
    go: get
    gem: fetch search
    bundle: install update add outdated
    composer: install update require create-project
    dotnet: restore add nuget
    mix: deps.get deps.update
    svn: checkout co update up commit ci
    hg: clone pull push
""")
"""Sub-commands that fetch; programs of these names are confined otherwise."""
BARE_NETWORK: Final = frozenset({"yarn"})
"""Programs that fetch when they are called without a sub-command."""
SERVER_SUBCOMMANDS: Final = _subcommands("""
    flask: run
    fastapi: dev run
    rails: s server
    next: dev start
    nuxt: dev preview
    astro: dev preview
    ng: serve
    vue-cli-service: serve
    webpack: serve
    hugo: server serve
    jekyll: serve s
    mkdocs: serve
    storybook: dev
    streamlit: run
    jupyter: lab notebook server
    phoenix: serve
    manage.py: runserver
""")
SERVER_SCRIPTS: Final = _programs("dev start serve server preview watch storybook")
"""Names of package scripts that serve by convention: `npm run dev`, `yarn start`."""
PACKAGE_MANAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
SERVER_MODULES: Final = _programs("http.server uvicorn gunicorn flask jupyter streamlit")
"""Modules that serve when they are run with `python -m`."""

OUTSIDE_SUBCOMMANDS: Final = {
    "cargo": {"install": NEEDS_SYSTEM, "uninstall": NEEDS_SYSTEM, "login": NEEDS_CREDENTIALS},
    "go": {"install": NEEDS_SYSTEM, "env": NEEDS_SYSTEM},
    "gem": {"install": NEEDS_SYSTEM, "update": NEEDS_SYSTEM, "push": NEEDS_CREDENTIALS},
    "uv": {"tool": NEEDS_SYSTEM, "python": NEEDS_SYSTEM, "publish": NEEDS_CREDENTIALS, "self": NEEDS_SYSTEM},
    "npm": {"login": NEEDS_CREDENTIALS, "publish": NEEDS_CREDENTIALS, "link": NEEDS_SYSTEM},
    "pnpm": {"publish": NEEDS_CREDENTIALS, "link": NEEDS_SYSTEM},
    "yarn": {"publish": NEEDS_CREDENTIALS, "link": NEEDS_SYSTEM, "global": NEEDS_SYSTEM},
    "poetry": {"publish": NEEDS_CREDENTIALS},
    "pre-commit": {"install": NEEDS_GIT_CONTROL, "uninstall": NEEDS_GIT_CONTROL},
    "husky": {"install": NEEDS_GIT_CONTROL, "init": NEEDS_GIT_CONTROL},
    "lefthook": {"install": NEEDS_GIT_CONTROL},
}
GIT_NETWORK: Final = frozenset({"fetch", "pull", "push", "ls-remote", "send-email"})
"""Sub-commands of git that speak to a remote with the user's credentials."""
GIT_CONTROL_READERS: Final = _subcommands("""
    config: --get --get-all --list -l get list --get-regexp --show-origin
    remote: -v --verbose get-url
    worktree: list
    submodule: status summary foreach
    lfs: ls-files status env
    init:
    maintenance:
""")
"""Sub-commands of git that write its configuration, and the first words behind them that only read."""
GIT_BARE_READERS: Final = frozenset({"remote", "submodule"})
"""Sub-commands of `git` that read only when no argument follows."""
WITH_SUBCOMMANDS: Final = {*NETWORK_SUBCOMMANDS, *SERVER_SUBCOMMANDS, *OUTSIDE_SUBCOMMANDS} | _programs(
    "git docker podman kubectl helm gh systemctl apt apt-get brew aws gcloud"
)
"""Programs whose second word selects their action."""
GLOBAL_FLAGS: Final = frozenset({"-g", "--global", "--location=global", "--user", "--system"})
"""Flags that make a package manager install for the whole user or machine."""
