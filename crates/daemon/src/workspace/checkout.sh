# Checks a worktree out, whole, however often it is asked to and wherever it was killed before.
# $1 repository, $2 directory, $3 branch, $4 the mark that is there while this is under way
set -eu
repository=$1 dir=$2 branch=$3 mark=$4
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_NAMESPACE
export GIT_TERMINAL_PROMPT=0

common() (cd "$1" && cd "$(git rev-parse --git-common-dir)" && pwd -P)

if [ -e "$mark" ]; then
    # The last one did not come to its end. A git that was killed has left its lock, too.
    git -C "$repository" worktree unlock -- "$dir" 2>/dev/null || :
    rm -rf -- "$dir"
elif [ -e "$dir/.git" ] && [ "$(common "$dir")" = "$(common "$repository")" ]; then
    exit 0
fi

# Removed by hand, or just now, it is still in git's list. A lock that is not ours stays.
if ! [ -e "$dir" ]; then
    git -C "$repository" worktree remove -- "$dir" 2>/dev/null || :
fi

mkdir -p -- "$mark"
if git -C "$repository" show-ref --verify --quiet "refs/heads/$branch"; then
    git -C "$repository" worktree add -- "$dir" "$branch"
else
    git -C "$repository" worktree add -b "$branch" -- "$dir"
fi
rmdir -- "$mark"
