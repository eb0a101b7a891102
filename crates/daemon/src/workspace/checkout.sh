# Checks a worktree out, whole, however often it is asked to and wherever it was killed before.
# $1 repository, $2 directory, $3 branch, $4 the mark that is there while this is under way,
# $5 the commit that a new branch begins at, if it is not HEAD
set -eu
repository=$1 dir=$2 branch=$3 mark=$4 base=${5:-HEAD}
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_NAMESPACE
export GIT_TERMINAL_PROMPT=0

common() (cd "$1" && cd "$(git rev-parse --git-common-dir)" && pwd -P)

# Removes what a git that failed or was killed has left; a killed one has left its lock, too.
clear() {
    git -C "$repository" worktree unlock -- "$dir" 2>/dev/null || :
    rm -rf -- "$dir"
}

# Removed by hand, or just now, it is still in git's list. A lock that is not ours stays.
forget() { git -C "$repository" worktree remove -- "$dir" 2>/dev/null || :; }

add() {
    if git -C "$repository" show-ref --verify --quiet "refs/heads/$branch"; then
        git -C "$repository" worktree add -- "$dir" "$branch"
    else
        git -C "$repository" worktree add -b "$branch" -- "$dir" "$base"
    fi
}

if [ -e "$mark" ]; then
    # The last one did not come to its end.
    clear
elif [ -e "$dir/.git" ] && [ "$(common "$dir")" = "$(common "$repository")" ]; then
    exit 0
fi

if ! [ -e "$dir" ]; then
    forget
fi

# What was there before is not ours to remove.
left=4
if [ -e "$dir" ] && [ -n "$(ls -A -- "$dir")" ]; then
    left=1
fi

mkdir -p -- "$mark"
# Git reads the list of all worktrees, and fails at one that another git is just making. It is asked again.
until add; do
    code=$?
    left=$((left - 1))
    [ "$left" -gt 0 ] || exit "$code"
    sleep 0.2 2>/dev/null || sleep 1
    clear
    forget
done
rmdir -- "$mark"
