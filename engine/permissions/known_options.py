"""Options that programs say they have; `python -m tests.known_options` prints this file.

git 2.39.5, GNU coreutils 9.1, grep 3.8, findutils 4.9, diffutils 3.8, file 5.44, tree 2.1, ripgrep 13. Of git only
those that name no program, no setting and no file: an option that is not here is asked about.
"""

from __future__ import annotations

from functools import cache
from typing import Final

_TABLE: Final = """
    @log: -# --abbrev-commit --after= --all --all-match --ancestry-path? --author-date-order --author=
        --basic-regexp --before= --boundary --branches? --cc --cherry --cherry-mark --cherry-pick --children
        --committer= --count --date-order --date= --dd --decorate? --dense --diff-merges= --do-walk --encoding=
        --exclude= --expand-tabs? --extended-regexp --first-parent --fixed-strings --follow --format=
        --full-history --glob= --graph --grep-reflog= --grep= --ignore-missing --invert-grep --left-only
        --left-right --log-size --max-count= --max-parents= --merge --merges --min-parents= --name-only
        --no-abbrev-commit --no-color --no-decorate --no-expand-tabs --no-merges --no-notes --no-patch
        --no-renames --no-walk? --not --notes? --objects --oneline --parents --perl-regexp --pretty? --reflog
        --regexp-ignore-case --relative-date --remotes? --reverse --right-only --show-linear-break? --show-pulls
        --simplify-by-decoration --simplify-merges --since-as-filter= --since= --single-worktree --skip=
        --source --sparse --tags? --timestamp --topo-order --until= --walk-reflogs -E -F -P -c -g -i -m -n= -r
        -t
    @diff: --abbrev? --anchored= --base --binary --break-rewrites? --cached --check --color-moved-ws=
        --color-moved? --color-words? --color? --compact-summary --cumulative --diff-algorithm= --exit-code
        --find-copies-harder --find-copies? --find-object= --find-renames? --follow --full-index
        --function-context --histogram --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol
        --ignore-matching-lines= --ignore-space-at-eol --ignore-space-change --ignore-submodules?
        --indent-heuristic --inter-hunk-context= --irreversible-delete --ita-invisible-in-index
        --ita-visible-in-index --merge-base --minimal --name-only --name-status --no-color --no-patch
        --no-prefix --no-renames --numstat --ours --output-indicator-context= --output-indicator-new=
        --output-indicator-old= --patch --patch-with-raw --patch-with-stat --patience --pickaxe-all
        --pickaxe-regex --quiet --raw --rename-empty --shortstat --staged --stat-count= --stat-graph-width=
        --stat-name-width= --stat-width= --stat? --submodule? --summary --text --theirs --unified?
        --word-diff-regex= --word-diff? --ws-error-highlight= -0 -1 -2 -3 -B? -C? -D -G= -I= -M? -R -S= -U? -W
        -a -b -l= -p -s -u -w -z
    git add: --all --chmod= --dry-run --force --ignore-errors --ignore-missing --ignore-removal --intent-to-add
        --patch --pathspec-file-nul --refresh --renormalize --sparse --update --verbose -A -N -f -n -p -u -v
    git am: --3way --abort --allow-empty --committer-date-is-author-date --continue --ignore-date
        --ignore-space-change --ignore-whitespace --keep --keep-cr --keep-non-patch --message-id --no-keep-cr
        --patch-format= --quiet --quit --quoted-cr= --reject --rerere-autoupdate --resolved --resolvemsg=
        --scissors --show-current-patch? --signoff --skip --utf8 --whitespace= -3 -C= -c -k -m -p= -q -r -s -u
    git apply: --3way --allow-empty --allow-overlap --apply --cached --check --ignore-space-change
        --ignore-whitespace --inaccurate-eof --index --intent-to-add --no-add --numstat --quiet --recount
        --reject --reverse --stat --summary --unidiff-zero --unsafe-paths --verbose --whitespace= -3 -C= -N -R
        -p= -q -v -z
    git blame: --date= -h --abbrev? --color-by-age --color-lines --ignore-rev= --incremental --line-porcelain
        --minimal --porcelain --progress --root --score-debug --show-email --show-name --show-number
        --show-stats -C? -L= -M? -b -c -e -f -l -n -p -s -t -w
    git branch: --abbrev? --all --color? --column? --contains= --copy --create-reflog --delete --force --format=
        --ignore-case --list --merged= --move --no-contains= --no-merged= --points-at= --quiet --remotes
        --set-upstream-to= --show-current --sort= --track? --unset-upstream --verbose -C -D -M -a -c -d -f -i -l
        -m -q -r -t? -u= -v
    git cat-file: --allow-unknown-type --batch-all-objects --batch-check? --batch-command? --batch? --buffer
        --follow-symlinks --mailmap --path= --unordered --use-mailmap -e -p -s -t -z
    git checkout: --no-recurse-submodules --conflict= --detach --force --guess --ignore-other-worktrees
        --ignore-skip-worktree-bits --merge --orphan= --ours --overlay --overwrite-ignore --patch
        --pathspec-file-nul --progress --quiet --theirs --track? -2 -3 -B= -b= -d -f -l -m -p -q -t?
    git cherry: --abbrev? --verbose -v
    git cherry-pick: --no-edit --no-gpg-sign --abort --allow-empty --allow-empty-message --cleanup= --continue
        --ff --keep-redundant-commits --mainline= --no-commit --quit --rerere-autoupdate --signoff --skip -m= -n
        -s -x
    git clean: --dry-run --exclude= --force --quiet -X -d -e= -f -n -q -x
    git clone: --no-recurse-submodules --bare --branch= --depth= --dissociate --ipv4 --ipv6 --jobs= --local
        --mirror --no-checkout --no-hardlinks --no-tags --progress --quiet --reject-shallow --shallow-exclude=
        --shallow-since= --shallow-submodules --shared --single-branch --sparse --verbose -4 -6 -b= -j= -l -n -q
        -s -v
    git commit: --no-edit --no-gpg-sign --ahead-behind --all --amend --author= --branch --cleanup= --date=
        --dry-run --fixup? --include --long --message= --no-post-rewrite --no-verify --null --only --patch
        --pathspec-file-nul --porcelain --quiet --reset-author --reuse-message= --short --signoff --squash=
        --status --trailer= --untracked-files? --verbose -C= -a -i -m= -n -o -p -q -s -u? -v -z
    git count-objects: --human-readable --verbose -H -v
    git describe: --abbrev? --all --always --broken? --candidates= --contains --debug --dirty? --exact-match
        --exclude= --first-parent --long --match= --tags
    git diff: @diff --no-ext-diff --no-textconv --abbrev= --stat -B -C -M
    git fetch: --no-recurse-submodules --all --append --atomic --auto-gc --auto-maintenance --deepen= --depth=
        --dry-run --force --ipv4 --ipv6 --jobs= --keep --multiple --negotiate-only --negotiation-tip= --prefetch
        --progress --prune --prune-tags --quiet --refetch --set-upstream --shallow-exclude= --shallow-since=
        --show-forced-updates --tags --unshallow --update-head-ok --update-shallow --verbose
        --write-commit-graph --write-fetch-head -4 -6 -P -a -f -j= -k -m -n -p -q -t -u -v
    git for-each-ref: --color? --contains= --count= --format= --ignore-case --merged= --no-contains=
        --no-merged= --perl --points-at= --python --shell --sort= --tcl -p -s
    git gc: --aggressive --auto --cruft --force --prune? --quiet -q
    git grep: -# --after-context= --all-match --and --basic-regexp --before-context= --break --cached --color?
        --column --context= --count --exclude-standard --ext-grep --extended-regexp --files-with-matches
        --files-without-match --fixed-strings --full-name --function-context --heading --ignore-case
        --invert-match --line-number --max-count= --max-depth= --name-only --not --null --only-matching --or
        --perl-regexp --quiet --recursive --show-function --text --threads= --untracked --word-regexp -A= -B=
        -C= -E -F -G -H -I -L -P -W -a -c -e= -h -i -l -m= -n -o -p -q -r -v -w -z
    git init: --bare --initial-branch= --quiet -b= -q
    git log: @log @diff --clear-decorations --decorate-refs-exclude= --decorate-refs= --mailmap --use-mailmap -q
    git ls-files: --abbrev? --cached --debug --deduplicate --deleted --directory --empty-directory --eol
        --error-unmatch --exclude-standard --exclude= --format= --full-name --ignored --killed --modified
        --others --resolve-undo --sparse --stage --unmerged --with-tree= -c -d -f -i -k -m -o -s -t -u -v -x= -z
    git ls-remote: --exit-code --get-url --heads --quiet --refs --sort= --symref --tags -h -q -t
    git ls-tree: --abbrev? --format= --full-name --full-tree --long --name-only --name-status --object-only -d
        -l -r -t -z
    git merge: --no-edit --no-gpg-sign --abort --allow-unrelated-histories --autostash --cleanup= --commit
        --continue --ff --ff-only --into-name= --log? --message= --no-verify --overwrite-ignore --progress
        --quiet --quit --rerere-autoupdate --signoff --squash --stat --summary --verbose -m= -n -q -v
    git merge-base: --all --fork-point --independent --is-ancestor --octopus -a
    git mv: --dry-run --force --sparse --verbose -f -k -n -v
    git name-rev: --all --always --exclude= --name-only --refs= --tags --undefined
    git pull: --no-edit --no-gpg-sign --all --allow-unrelated-histories --append --autostash --cleanup= --commit
        --deepen= --depth= --dry-run --ff --ff-only --force --ipv4 --ipv6 --jobs? --keep --log?
        --negotiation-tip= --progress --prune --quiet --rebase? --set-upstream --shallow-exclude=
        --shallow-since= --show-forced-updates --signoff? --squash --stat --tags --unshallow --update-shallow
        --verbose --verify -4 -6 -a -f -j? -k -n -p -q -r? -t -v
    git push: --no-recurse-submodules --all --atomic --delete --dry-run --follow-tags --force
        --force-if-includes --force-with-lease? --ipv4 --ipv6 --mirror --no-verify --porcelain --progress
        --prune --quiet --set-upstream --tags --thin --verbose -4 -6 -d -f -n -q -u -v
    git range-diff: @diff --creation-factor= --left-only --no-dual-color --notes? --right-only
    git reflog: @log @diff
    git reset: --hard --intent-to-add --keep --merge --mixed --no-refresh --patch --pathspec-file-nul --quiet
        --soft -N -p -q
    git restore: --conflict= --ignore-skip-worktree-bits --ignore-unmerged --merge --ours --overlay --patch
        --pathspec-file-nul --progress --quiet --source= --staged --theirs --worktree -2 -3 -S -W -m -p -q -s=
    git rev-list: @log --bisect --bisect-all --bisect-vars --branches --disk-usage? --exclude-hidden=
        --no-max-parents --no-min-parents --object-names --quiet --remotes --remove-empty --tags --unpacked
    git rev-parse: --verify -q --quiet --sq --short? --not --abbrev-ref? --symbolic --symbolic-full-name --all
        --branches? --tags? --remotes? --glob= --exclude= --disambiguate= --show-toplevel --show-prefix
        --show-cdup --show-superproject-working-tree --git-dir --absolute-git-dir --git-common-dir
        --is-inside-git-dir --is-inside-work-tree --is-bare-repository --is-shallow-repository
        --show-object-format? --revs-only --no-revs --flags --no-flags --default=
    git revert: --no-edit --no-gpg-sign --abort --cleanup= --continue --mainline= --no-commit --quit --reference
        --rerere-autoupdate --signoff --skip -m= -n -s
    git rm: --cached --dry-run --force --ignore-unmatch --pathspec-file-nul --quiet --sparse -f -n -q -r
    git shortlog: @log --committer --email --group= --numbered --summary -e -n -s
    git show: @log @diff --clear-decorations --decorate-refs-exclude= --decorate-refs= --mailmap --use-mailmap
        -q
    git show-ref: --abbrev? --dereference --exclude-existing? --hash? --head --heads --quiet --tags --verify -d
        -q -s?
    git status: --ahead-behind --branch --column? --find-renames? --ignore-submodules? --ignored? --long
        --no-renames --null --porcelain? --short --show-stash --untracked-files? --verbose -M? -b -s -u? -v -z
    git switch: --no-recurse-submodules --conflict= --create= --detach --discard-changes --force --force-create=
        --guess --ignore-other-worktrees --merge --orphan= --overwrite-ignore --progress --quiet --track? -C=
        -c= -d -f -m -q -t?
    git symbolic-ref: --delete --quiet --recurse --short -d -m= -q
    git tag: --annotate --cleanup= --color? --column? --contains= --create-reflog --delete --force --format=
        --ignore-case --list --merged= --message= --no-contains= --no-merged= --points-at= --sort= --verify -a
        -d -f -i -l -m= -n? -v
    git whatchanged: @log @diff --clear-decorations --decorate-refs-exclude= --decorate-refs= --mailmap
        --use-mailmap -q
    git stash push: --all --include-untracked --keep-index --message= --patch --pathspec-file-nul --quiet
        --staged -S -a -k -m= -p -q -u
    git stash save: --all --include-untracked --keep-index --message= --patch --quiet --staged -S -a -k -m= -p
        -q -u
    git stash list: @log @diff
    git stash show: @log @diff --include-untracked --only-untracked
    git stash drop: --quiet -q
    git stash pop: --index --quiet -q
    git stash apply: --index --quiet -q
    git stash branch:
    git stash clear:
    git remote add: --fetch --master= --mirror? --tags --track= -f -m= -t=
    git remote rename: --progress
    git remote remove:
    git remote get-url: --all --push
    git remote set-url: --add --delete --push
    git remote show: -n
    git remote prune: --dry-run -n
    git remote update: --prune -p
    git worktree add: --checkout --detach --force --guess-remote --lock --quiet --reason= --track -B= -b= -d -f
        -q
    git worktree list: --porcelain --verbose -v -z
    git worktree lock: --reason=
    git worktree move: --force -f
    git worktree prune: --dry-run --verbose -n -v
    git worktree remove: --force -f
    git worktree unlock:
    cat: --help --number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs --squeeze-blank
        --version -A -E -T -b -e -n -s -t -u -v
    head: -# --bytes= --help --lines= --quiet --silent --verbose --version --zero-terminated -c= -n= -q -v -z
    tail: -# --bytes= --follow? --help --lines= --max-unchanged-stats= --pid= --quiet --retry --silent
        --sleep-interval= --verbose --version --zero-terminated -F -c= -f? -n= -q -s= -v -z
    cut: --bytes= --characters= --complement --delimiter= --fields= --help --only-delimited --output-delimiter=
        --version --zero-terminated -M -b= -c= -d= -f= -n -s -z
    cmp: --bytes= --help --ignore-initial= --print-bytes --quiet --silent --verbose --version -b -i= -l -n= -s
        -v
    stat: --cached= --dereference --file-system --format= --help --printf= --terse --version -L -c= -f -t
    df: --all --block-size= --exclude-type= --help --human-readable --inodes --local --no-sync --output?
        --portability --print-type --si --sync --total --type= --version -B= -H -P -T -a -h -i -k -l -t= -v -x=
    ls: --all --almost-all --author --block-size= --classify? --color? --context --dereference
        --dereference-command-line --dereference-command-line-symlink-to-dir --directory --dired --escape
        --file-type --full-time --group-directories-first --help --hide-control-chars --hide= --human-readable
        --hyperlink? --ignore-backups --ignore= --indicator-style= --inode --kibibytes --literal --no-group
        --numeric-uid-gid --quote-name --quoting-style= --recursive --reverse --show-control-chars --si --size
        --sort= --tabsize= --time-style= --time= --version --width= --zero -1 -A -B -C -D -F? -G -H -I= -L -N -Q
        -R -S -T= -U -X -Z -a -b -c -d -f -g -h -i -k -l -m -n -o -p= -q -r -s -t -u -v -w= -x
    pwd: --help --logical --physical --version -L -P
    nl: --body-numbering= --footer-numbering= --header-numbering= --help --join-blank-lines= --line-increment=
        --no-renumber --number-format= --number-separator= --number-width= --section-delimiter=
        --starting-line-number= --version -b= -d= -f= -h= -i= -l= -n= -p -s= -v= -w=
    wc: --bytes --chars --files0-from= --help --lines --max-line-length --version --words -L -c -l -m -w
    du: --all --apparent-size --block-size= --bytes --count-links --dereference --dereference-args
        --exclude-from= --exclude= --files0-from= --help --human-readable --inodes --max-depth= --no-dereference
        --null --one-file-system --separate-dirs --si --summarize --threshold= --time --time-style= --time=
        --total --version -0 -B= -D -H -L -P -S -X= -a -b -c -d= -h -k -l -m -s -t= -x
    uniq: --all-repeated? --check-chars= --count --group? --help --ignore-case --repeated --skip-chars=
        --skip-fields= --unique --version --zero-terminated -D -c -d -f= -i -s= -u -w= -z
    grep: -# --after-context= --basic-regexp --before-context= --binary --binary-files= --byte-offset --color?
        --colour? --context= --count --dereference-recursive --devices= --directories= --exclude-dir=
        --exclude-from= --exclude= --extended-regexp --file= --files-with-matches --files-without-match
        --fixed-strings --group-separator= --help --ignore-case --include= --initial-tab --invert-match --label=
        --line-buffered --line-number --line-regexp --max-count= --no-filename --no-group-separator
        --no-ignore-case --no-messages --null --null-data --only-matching --perl-regexp --quiet --recursive
        --regexp= --silent --text --version --with-filename --word-regexp -A= -B= -C= -D= -E -F -G -H -I -L -P
        -R -T -U -V -Z -a -b -c -d= -e= -f= -h -i -l -m= -n -o -q -r -s -v -w -x -z
    sort: --batch-size= --buffer-size= --check= --compress-program= --debug --dictionary-order
        --field-separator= --files0-from= --general-numeric-sort --help --human-numeric-sort --ignore-case
        --ignore-leading-blanks --ignore-nonprinting --key= --merge --month-sort --numeric-sort --output=
        --parallel= --random-sort --random-source= --reverse --sort= --stable --temporary-directory= --unique
        --version --version-sort --zero-terminated -C= -M -R -S= -T= -V -b -c= -d -f -g -h -i -k= -m -n -o= -r
        -s -t= -u -z
    diff: -# --GTYPE-group-format= --LTYPE-line-format= --brief --color? --context? --ed --exclude-from=
        --exclude= --expand-tabs --from-file= --help --horizon-lines= --ifdef= --ignore-all-space
        --ignore-blank-lines --ignore-case --ignore-file-name-case --ignore-matching-lines=
        --ignore-space-change --ignore-tab-expansion --ignore-trailing-space --initial-tab --label=
        --left-column --line-format= --minimal --new-file --no-dereference --no-ignore-file-name-case --normal
        --paginate --palette= --rcs --recursive --report-identical-files --show-c-function --show-function-line=
        --side-by-side --speed-large-files --starting-file= --strip-trailing-cr --suppress-blank-empty
        --suppress-common-lines --tabsize= --text --to-file= --unidirectional-new-file --unified? --version
        --width= -B -C? -D= -E -F= -I= -N -S= -T -U? -W= -X= -Z -a -b -c? -d -e -i -l -n -p -q -r -s -t -u? -v
        -w -x= -y
    file: --apple --brief --checking-printout --compile --debug --dereference --exclude-quiet= --exclude=
        --extension --files-from= --help --keep-going --list --magic-file= --mime --mime-encoding --mime-type
        --no-buffer --no-dereference --no-pad --no-sandbox --parameter --preserve-date --print0 --raw
        --separator= --special-files --uncompress --uncompress-noreport --version -0 -C -F= -L -N -P -S -Z -b -c
        -d -e= -f= -h -i -k -l -m= -n -p -r -s -v -z
    tree: --charset= --device --dirsfirst --du --fflinks --filelimit= --filesfirst --fromfile --gitfile=
        --gitignore --help --hintro= --houtro= --ignore-case= --info --infofile= --inodes --matchdirs
        --metafirst --nolinks --noreport --prune --si --sort= --timefmt= --version -A -C -D -F -H= -I= -J -L= -N
        -P= -Q -R -S -T= -U -X -a -c -d -f -g -h -i -l -n -o= -p -q -r -s -t -u -v -x
    rg: --after-context= --auto-hybrid-regex --before-context= --binary --block-buffered --byte-offset
        --case-sensitive --color= --colors= --column --context-separator= --context= --count --count-matches
        --crlf --debug --dfa-size-limit= --encoding= --engine= --field-context-separator=
        --field-match-separator= --file= --files --files-with-matches --files-without-match --fixed-strings
        --follow --glob-case-insensitive --glob= --heading --help --hidden --iglob= --ignore-case
        --ignore-file-case-insensitive --ignore-file= --include-zero --invert-match --json --line-buffered
        --line-number --line-regexp --max-columns-preview --max-columns= --max-count= --max-depth=
        --max-filesize= --mmap --multiline --multiline-dotall --no-config --no-filename --no-heading --no-ignore
        --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global --no-ignore-messages
        --no-ignore-parent --no-ignore-vcs --no-line-number --no-messages --no-mmap --no-pcre2-unicode
        --no-require-git --no-unicode --null --null-data --one-file-system --only-matching --passthru
        --path-separator= --pcre2 --pcre2-version --pre-glob= --pre= --pretty --quiet --regex-size-limit=
        --regexp= --replace= --search-zip --smart-case --sort= --sortr= --stats --text --threads= --trim
        --type-add= --type-clear= --type-list --type-not= --type= --unrestricted --version --vimgrep
        --with-filename --word-regexp -0 -A= -B= -C= -E= -F -H -I -L -M= -N -P -S -T= -U -V -a -b -c -e= -f= -g=
        -h -i -j= -l -m= -n -o -p -q -r= -s -t= -u -v -w -x -z
    find: -# -P -a -o -newermt -newerct -newerat -newermm -amin -and -anewer -atime -cmin -cnewer -context
        -ctime -daystart -delete -depth -empty -exec -execdir -executable -false -files0-from -fls -follow
        -fprint -fprint0 -fprintf -fstype -gid -group -ignore_readdir_race -ilname -iname -inum -iregex
        -iwholename -links -lname -ls -maxdepth -mindepth -mmin -mount -mtime -name -newer -nogroup
        -noignore_readdir_race -noleaf -not -nouser -nowarn -ok -okdir -or -path -perm -print -print0 -printf
        -prune -quit -readable -regex -regextype -size -true -type -uid -used -user -warn -wholename -writable
        -xdev -xtype
    git stash:
    git worktree:
    git remote: -v --verbose
"""
"""An option a word: `=` behind it takes a value, `?` may take one; `-#` is a number."""


@cache
def read_options() -> dict[tuple[str, ...], dict[str, str]]:
    """Sign of each option (`=`, `?` or empty) by the words of its program."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    options: dict[str, str] = {}
    for line in _TABLE.strip("\n").splitlines():
        words, colon, rest = line.partition(":")
        if colon:
            options = found.setdefault(tuple(words.split()), {})
        for option in (rest if colon else line).split():
            name = option.rstrip("=?")
            options |= found[option,] if option.startswith("@") else {name: option[len(name) :]}
    return found
