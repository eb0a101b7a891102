//! Where the turns of a run work, in a word.

use crate::vocabulary::vocabulary;

vocabulary! {
    #[derive(Default)]
    Strategy {
        /// In the directory the run was started in, which is never made nor removed.
        #[default]
        Inplace "inplace"
        /// In a directory of its own under the root.
        Dir "dir"
        /// In a git worktree of its own under the root.
        Worktree "worktree"
    }
}
