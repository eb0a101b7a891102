//! The codes of the daemon's errors: the word on the wire, the HTTP status and the exit code of a client.
//!
//! One table declares all of them, and `docs/exit-codes.md` repeats the table; `xtask tidy` compares the two. The words
//! are for scripts and stay as they are. Codes that only a client says, such as `usage`, are not here.

use crate::vocabulary::Vocabulary;

macro_rules! codes {
    ($($variant:ident $word:literal $status:literal $exit:literal $meaning:literal)+) => {
        /// Why the daemon rejects a request, or does not start.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)+
        }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The text on the wire.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The HTTP status of an answer with this code.
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$variant => $status,)+
                }
            }

            /// The exit code of a command that ends with this answer: 2 for a rejected request, 7 for a daemon that
            /// cannot do its work; the test below names the exceptions.
            pub const fn exit(self) -> u8 {
                match self {
                    $(Self::$variant => $exit,)+
                }
            }

            /// One line for a person.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)+
                }
            }
        }
    };
}

codes! {
    // The request is wrong.
    BadRequest "bad_request" 400 2 "the request is malformed, or a value of it is out of range"
    BadCommand "bad_command" 400 2 "the command of the run is missing or cannot be used"
    BadFilter "bad_filter" 400 2 "the filter of a webhook cannot be read"
    BadHeartbeat "bad_heartbeat" 400 2 "the heartbeat is out of range"
    BadSchedule "bad_schedule" 400 2 "the schedule cannot be read, or never happens"
    BadSecret "bad_secret" 400 2 "the secret of a webhook is too short"
    BadSink "bad_sink" 400 2 "the address of a sink cannot be used, or there are too many sinks"
    BadTask "bad_task" 400 2 "the task of a trigger cannot be read"
    BadTimeZone "bad_time_zone" 400 2 "the time zone is unknown"
    BadWatch "bad_watch" 400 2 "the pattern of a watch cannot be used"
    NoDirectory "no_directory" 400 2 "the directory is missing, or is not a directory"
    NoRepository "no_repository" 400 2 "the directory of a worktree run is not in a git repository"
    NotMade "not_made" 400 2 "the trigger could not make its run now"
    OutputUnreadable "output_unreadable" 400 2 "the output of the run cannot be read"
    TooDeep "too_deep" 400 2 "the parent run has too many runs above it"
    TooMany "too_many" 400 2 "the answer would have too many rows"
    Unreadable "unreadable" 400 2 "the stored trigger cannot be read"
    WorkflowInWorkspace "workflow_in_workspace" 400 2 "the loop file lies where an agent can change it"
    // The loop file or the config is wrong.
    MissingWorkflowFile "missing_workflow_file" 400 2 "the file does not exist"
    UnreadableFile "unreadable_file" 400 2 "the file cannot be read"
    FileTooBig "file_too_big" 400 2 "the file is bigger than 1 MiB"
    NotUtf8 "not_utf8" 400 2 "the file is not UTF-8 text"
    WorkflowParseError "workflow_parse_error" 400 2 "the front matter is not YAML"
    WorkflowFrontMatterNotAMap "workflow_front_matter_not_a_map" 400 2 "the front matter is not a map"
    ConfigParseError "config_parse_error" 400 2 "`config.toml` is not TOML"
    TemplateParseError "template_parse_error" 400 2 "the prompt is not a template"
    TemplateRenderError "template_render_error" 400 2 "the prompt names a value that does not exist"
    TemplateBudgetExceeded "template_budget_exceeded" 400 2 "the prompt takes too much work or memory to render"
    UnknownKey "unknown_key" 400 2 "the key is unknown"
    NoEffect "no_effect" 400 2 "the key is valid, but has no effect here"
    MissingSecret "missing_secret" 400 2 "the environment variable of a secret is not set"
    WrongType "wrong_type" 400 2 "the value has the wrong type"
    BadValue "bad_value" 400 2 "the value is out of range or cannot be used"
    NegativeLimit "negative_limit" 400 2 "the limit is negative"
    CeilingExceeded "ceiling_exceeded" 400 2 "the limit is higher than the config allows"
    UnknownKind "unknown_kind" 400 2 "the kind is unknown"
    UnsupportedKind "unsupported_kind" 400 2 "the kind is valid, but this version does not support it"
    MissingCommand "missing_command" 400 2 "the agent has no command"
    MissingProgram "missing_program" 400 2 "the program of the agent's command was not found"
    UnsetVariable "unset_variable" 400 2 "the environment variable is not set"
    WorkspaceEscapes "workspace_escapes" 400 2 "the workspace lies outside of the workspace root"
    EnvNotAllowed "env_not_allowed" 400 2 "the config does not allow the environment variable"
    DuplicateTool "duplicate_tool" 400 2 "two tools have the same name"
    BadSchema "bad_schema" 400 2 "the `input_schema` of a tool has a keyword that is not checked"
    NeedsSnapshots "needs_snapshots" 400 2 "the setting needs snapshots of the workspace"
    // The caller may not.
    Unauthorized "unauthorized" 401 2 "the request lacks the token of `listen.token`"
    BadSignature "bad_signature" 401 2 "the delivery is not signed with the secret of the trigger"
    NeedsToken "needs_token" 403 2 "only the live attempt of the run may do this, with its token"
    InsideARun "inside_a_run" 403 2 "a call from inside a run may not give this order"
    NotBelow "not_below" 403 2 "a run may only steer itself and its descendants"
    NotAPerson "not_a_person" 403 2 "a command of the daemon may not answer a run"
    CallerUnknown "caller_unknown" 403 2 "only a person may answer, and the daemon cannot tell who calls"
    // There is no such thing.
    UnknownRun "unknown_run" 404 2 "the run does not exist"
    UnknownCall "unknown_call" 404 2 "the run has no such call in doubt"
    UnknownTurn "unknown_turn" 404 2 "the run has no such turn"
    NoSnapshot "no_snapshot" 404 2 "the run has no snapshot of that turn"
    NotRestorable "not_restorable" 409 2 "the workspace of this run cannot be put back"
    RestoreFailed "restore_failed" 409 2 "the workspace was not put back"
    NotForkable "not_forkable" 409 2 "the run cannot be forked at that turn"
    NotMergeable "not_mergeable" 409 2 "the run has no branch that could be merged"
    MergeConflict "merge_conflict" 409 1 "the merge has conflicts, and nothing was changed"
    Uncommitted "uncommitted" 409 2 "the workspace has changes that are not committed"
    UnknownAttempt "unknown_attempt" 404 2 "the run has no such attempt"
    UnknownTrigger "unknown_trigger" 404 2 "the trigger does not exist"
    UnknownSink "unknown_sink" 404 2 "the sink does not exist"
    UnknownHook "unknown_hook" 404 2 "the webhook does not exist"
    UnknownPath "unknown_path" 404 2 "the path is not part of the API"
    BadLink "bad_link" 404 2 "the link of the notice is invalid, or older than a day"
    WrongMethod "wrong_method" 405 2 "the path does not take this method"
    // The state forbids it.
    AmbiguousRun "ambiguous_run" 409 2 "several runs start with this text"
    AlreadyAnswered "already_answered" 409 2 "the question was answered already"
    BudgetSpent "budget_spent" 409 2 "a budget that the run shares is spent and would end it again"
    CallInDoubt "call_in_doubt" 409 2 "it is not known how the call ended, and repeating it may do harm"
    CallIsOpen "call_is_open" 409 2 "another process of the attempt is making the call"
    ErrandIsLive "errand_is_live" 409 2 "an errand of the run is alive, so the run cannot be rebuilt"
    HasChildren "has_children" 409 2 "the run has children that have not ended"
    HasEnded "has_ended" 409 2 "the run has ended"
    Held "held" 409 2 "the run is paused with every other run"
    IdConflict "id_conflict" 409 2 "the id belongs to another order or run"
    InboxFull "inbox_full" 409 2 "the inbox of the run is full"
    InDoubt "in_doubt" 409 2 "it is not known how the run with this key ended"
    IsEnding "is_ending" 409 2 "the run is being ended"
    JournalBehind "journal_behind" 409 2 "the journal is older than the directory of the run"
    KeyConflict "key_conflict" 409 2 "the key was used before, for another command"
    MakesNoRoom "makes_no_room" 409 2 "the running daemon may not be replaced by this one"
    NameTaken "name_taken" 409 2 "an open run has this name"
    NeedsDecision "needs_decision" 409 2 "the run waits for a yes or a no"
    NoNextTurn "no_next_turn" 409 2 "the run is a command, which has no later turn to pause before or to read a message in"
    NoTerminal "no_terminal" 409 2 "the run has no terminal now"
    NotBlocked "not_blocked" 409 2 "the run is not blocked"
    NotDriven "not_driven" 409 2 "the agent of the run is a command, which keeps no transcript"
    NotInJournal "not_in_journal" 409 2 "the run has a directory, but the journal does not know it"
    NotLive "not_live" 409 2 "the attempt is not alive"
    NotPaused "not_paused" 409 2 "the run is neither paused nor blocked"
    NotRecoverable "not_recoverable" 409 2 "the run cannot be rebuilt from its directory"
    NotTaken "not_taken" 409 2 "the run changed at that moment, so the order was not carried out"
    NothingToRecover "nothing_to_recover" 409 2 "the journal lacks nothing of the run"
    RunIsLive "run_is_live" 409 2 "the run has not ended"
    StaleOrder "stale_order" 409 2 "the run has changed since the state that the order was given for"
    TooManyCalls "too_many_calls" 409 2 "the turn has made too many calls under keys"
    TooManyChildren "too_many_children" 409 2 "the parent run has too many children"
    TooWide "too_wide" 409 2 "the parent run has as many live children as it may have"
    TreeSpent "tree_spent" 409 2 "the parent run has too little left of its limits for another child"
    TriggerTaken "trigger_taken" 409 2 "another trigger has this name"
    UnwritableRun "unwritable_run" 409 2 "nothing more can be written to the journal of the run"
    WorkspaceKept "workspace_kept" 409 2 "the workspace of the run holds work that would be lost"
    // The delivery is not taken.
    Timeout "timeout" 408 2 "the body of a delivery did not arrive in time"
    TooLarge "too_large" 413 2 "the delivery is larger than 1 MiB"
    Overloaded "overloaded" 503 7 "too many deliveries are waiting"
    // The daemon or its host cannot.
    Bug "bug" 500 7 "the daemon has a bug"
    ConfigUnusable "config_unusable" 500 2 "the config of the daemon cannot be used until a person corrects it"
    Io "io" 500 7 "the host refused a read or a write"
    JournalUnusable "journal_unusable" 500 7 "the journal cannot be used"
    UnreadableRun "unreadable_run" 500 2 "the run cannot be read"
    Busy "busy" 503 7 "the run is being changed; nothing was written"
    DaemonLeaving "daemon_leaving" 503 7 "the daemon is about to exit; nothing was written"
    JournalGone "journal_gone" 503 7 "the file of the journal is gone; nothing was written"
    JournalLocked "journal_locked" 503 7 "another program has locked the journal; nothing was written"
    NoResources "no_resources" 503 7 "the host lacks descriptors, processes or memory"
    TimedOut "timed_out" 503 2 "the order was not written in time; it may still be carried out later"
    DiskFull "disk_full" 507 2 "the disk is full"
    // The daemon cannot start.
    BadConfig "bad_config" 503 2 "the config is wrong for this version"
    DaemonRunning "daemon_running" 503 2 "another daemon serves the state directory"
    DaemonSilent "daemon_silent" 503 2 "the running daemon did not exit when it was asked to"
    DatabaseCorrupt "database_corrupt" 503 2 "the journal is damaged"
    DatabaseLocked "database_locked" 503 2 "another program has locked the journal"
    DatabaseNewer "database_newer" 503 2 "a newer version wrote the journal"
    DatabaseReadOnly "database_read_only" 503 2 "the journal is read-only"
    DatabaseUnusable "database_unusable" 503 7 "the journal cannot be opened"
    NoBootId "no_boot_id" 503 7 "the boot id of the host cannot be read"
    NoRuntime "no_runtime" 503 7 "the runtime of the daemon cannot start"
    StateUnusable "state_unusable" 503 7 "the state directory cannot be used"
}

impl Vocabulary for Code {
    fn word(self) -> &'static str {
        Self::word(self)
    }

    fn of(word: &str) -> Option<Self> {
        Self::of(word)
    }
}

impl Code {
    /// The code with this word; `None` if the word is of a newer daemon or of no daemon.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_one_code() {
        for code in Code::ALL {
            assert_eq!(Code::of(code.word()), Some(*code));
        }
        assert_eq!(Code::of("no_such_code"), None);
    }

    #[test]
    fn every_status_is_an_error() {
        let odd = |code: &&Code| !(400..600).contains(&code.status());
        assert_eq!(Code::ALL.iter().find(odd), None);
    }

    /// An exit code follows the status, but for these. A merge with conflicts exits with 1, as the one of git does. For
    /// the others, a client has exited with the other code since before the table.
    #[test]
    fn a_request_that_is_wrong_exits_with_2_and_a_daemon_that_cannot_work_with_7() {
        let is_usual = |code: Code| code.exit() == if code.status() < 500 { 2 } else { 7 };
        let unusual: Vec<&str> =
            Code::ALL.iter().filter(|code| !is_usual(**code)).map(|code| code.word()).collect();
        assert_eq!(
            unusual,
            [
                "merge_conflict",
                "config_unusable",
                "unreadable_run",
                "timed_out",
                "disk_full",
                "bad_config",
                "daemon_running",
                "daemon_silent",
                "database_corrupt",
                "database_locked",
                "database_newer",
                "database_read_only",
            ]
        );
    }
}
