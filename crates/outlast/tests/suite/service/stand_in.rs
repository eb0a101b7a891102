//! Stand-ins for the tools of service managers: they write down how they were called, keep their state in files,
//! start what they are told to start for real, and lie, fail or hang where a test wants them to.

use std::fs;
use std::path::PathBuf;

use crate::harness::{Home, text};

/// A home whose PATH begins with the stand-ins.
pub(super) struct Stage {
    pub(super) home: Home,
    state: PathBuf,
}

const SYSTEMCTL: &str = r#"
echo "$*" >> "$S/calls"
[ "$1" = --user ] || { echo 'this stand-in has users only' >&2; exit 1; }
shift
[ "$1" != --no-block ] || shift
verb=$1
UNIT="$HOME/.config/systemd/user/outlast.service"
manners
start() {
  [ -f "$S/loaded" ] || { echo "Unit outlast.service not found." >&2; exit 5; }
  exec_start=$(sed -n 's/^ExecStart=//p' "$S/loaded")
  sed -n 's/^Environment=/export /p' "$S/loaded" > "$S/run"
  echo "exec $exec_start" >> "$S/run"
  NOTIFY_SOCKET=@outlast-none setsid sh -c 'export SYSTEMD_EXEC_PID=$$; echo $$ > "$1/pid"; . "$1/run"' - "$S" </dev/null >/dev/null 2>&1 &
  await 'is_running'
}
case "$verb" in
  show) case "$*" in *outlast-web.service)
    if [ -L "${UNIT%/*}/default.target.wants/outlast-web.service" ]; then echo UnitFileState=enabled; else echo UnitFileState=disabled; fi
    exit 0;; esac
    case "$*" in *=Version) echo "Version=$(cat "$S/version")"; exit 0;; esac
    if [ -f "$S/loaded" ]; then
      echo LoadState=loaded; echo "FragmentPath=$UNIT"
    else
      echo LoadState=not-found; echo FragmentPath=
    fi
    if [ -L "${UNIT%/*}/default.target.wants/outlast.service" ]; then echo UnitFileState=enabled; else echo UnitFileState=disabled; fi
    if is_running; then
      echo ActiveState=active; echo SubState=running; echo "MainPID=$(cat "$S/pid")"
    else
      echo ActiveState=inactive; echo SubState=dead; echo MainPID=0
    fi
    if [ -f "$S/loaded" ] && ! cmp -s "$S/loaded" "$UNIT"; then echo NeedDaemonReload=yes; else echo NeedDaemonReload=no; fi;;
  daemon-reload) if [ -f "$UNIT" ]; then cp "$UNIT" "$S/loaded"; else rm -f "$S/loaded"; fi;;
  *) case "$*" in *outlast-web.service) WEB="${UNIT%/*}/outlast-web.service"
    case $verb in
      enable) mkdir -p "${UNIT%/*}/default.target.wants"; ln -sf "$WEB" "${UNIT%/*}/default.target.wants/outlast-web.service";;
      disable) rm -f "${UNIT%/*}/default.target.wants/outlast-web.service";;
    esac
    exit 0;; esac;;
esac
case $verb in
  enable) mkdir -p "${UNIT%/*}/default.target.wants"; ln -sf "$UNIT" "${UNIT%/*}/default.target.wants/outlast.service";;
  disable) rm -f "${UNIT%/*}/default.target.wants/outlast.service";;
  start) is_running || start;;
  restart) end; start;;
  stop) end;;
  reset-failed | show | daemon-reload) ;;
  *) echo "Unknown verb $verb" >&2; exit 1;;
esac
"#;

const LOGINCTL: &str = r#"
echo "loginctl $*" >> "$S/calls"
verb=$1
manners
case "$verb" in
  show-user) echo "Linger=$(cat "$S/linger")";;
  enable-linger) echo yes > "$S/linger";;
esac
"#;

const LAUNCHCTL: &str = r#"
echo "$*" >> "$S/calls"
verb=$1
manners
PLIST="$HOME/Library/LaunchAgents/dev.outlast.daemon.plist"
start() {
  sed -n '/ProgramArguments/,/<\/array>/s/ *<string>\(.*\)<\/string>/"\1"/p' "$S/loaded" | tr '\n' ' ' > "$S/words"
  sed -n '/EnvironmentVariables/,/<\/dict>/s/ *<key>\(.*\)<\/key><string>\(.*\)<\/string>/export \1="\2"/p' "$S/loaded" > "$S/run"
  echo "exec $(cat "$S/words")" >> "$S/run"
  setsid sh -c 'echo $$ > "$1/pid"; . "$1/run"' - "$S" </dev/null >/dev/null 2>&1 &
  await 'is_running'
}
case "$verb" in
  print)
    case "$2" in
      gui/*/dev.outlast.daemon)
        [ -f "$S/loaded" ] || { echo 'Could not find service' >&2; exit 113; }
        echo "$2 = {"; printf '\tpath = %s\n' "$PLIST"
        if is_running; then printf '\tstate = running\n\tpid = %s\n' "$(cat "$S/pid")"; else printf '\tstate = not running\n'; fi
        echo "}";;
      gui/*) [ ! -f "$S/no-session" ] || { echo 'Domain does not support specified action' >&2; exit 125; };;
    esac;;
  bootstrap) cp "$3" "$S/loaded"; start;;
  bootout) [ -f "$S/loaded" ] || exit 3; end; rm -f "$S/loaded";;
  enable) ;;
  kickstart) is_running || start;;
  *) exit 64;;
esac
"#;

/// What they have in common. A process that is not collected is dead too.
const COMMON: &str = r#"#!/bin/sh
S='@STATE@'
manners() {
  case "$(cat "$S/manners")" in
    *" lies:$verb "*) exit 0;;
    *" fails:$verb "*) echo "the stand-in does not $verb" >&2; exit 1;;
    *" hangs:$verb "*) exec sleep 1000;;
    *" no-bus "*) echo 'Failed to connect to bus: No medium found' >&2; exit 1;;
  esac
}
is_running() {
  pid=$(cat "$S/pid" 2>/dev/null) && [ -n "$pid" ] && [ -d "/proc/$pid" ] && ! grep -q '^State:.[ZX]' "/proc/$pid/status"
}
await() { i=0; until eval "$1"; do i=$((i+1)); [ $i -lt 3000 ] || exit 1; sleep 0.02; done; }
end() { if is_running; then kill -TERM "$pid"; await '! is_running'; fi; rm -f "$S/pid"; }
"#;

impl Stage {
    pub(super) fn new() -> Self {
        Self::with(Home::new())
    }

    pub(super) fn with(home: Home) -> Self {
        let (tools, state) = (home.scratch().join("tools"), home.scratch().join("manager"));
        fs::create_dir_all(&tools).expect("the scratch directory is ours");
        fs::create_dir_all(&state).expect("the scratch directory is ours");
        let common = COMMON.replace("@STATE@", state.to_str().expect("a plain path"));
        for (name, script) in
            [("systemctl", SYSTEMCTL), ("loginctl", LOGINCTL), ("launchctl", LAUNCHCTL)]
        {
            let path = tools.join(name);
            crate::programs::script(&path, &format!("{common}{script}"));
        }
        let path = std::env::var("PATH").expect("tests have a PATH");
        let home = home.env("PATH", format!("{}:{path}", tools.display())).env("USER", "robin");
        let stage = Self { home, state };
        stage.manners("");
        stage.version("257.2");
        stage.linger("yes");
        stage
    }

    /// `lies:VERB`, `fails:VERB`, `hangs:VERB`, `no-bus`; any of them, with spaces between.
    pub(super) fn manners(&self, manners: &str) {
        self.set("manners", &format!(" {manners} "));
    }

    pub(super) fn version(&self, version: &str) {
        self.set("version", version);
    }

    pub(super) fn linger(&self, linger: &str) {
        self.set("linger", linger);
    }

    pub(super) fn set(&self, name: &str, value: &str) {
        fs::write(self.state.join(name), value).expect("the scratch directory is ours");
    }

    /// What was asked since the last time this was.
    pub(super) fn calls(&self) -> Vec<String> {
        let path = self.state.join("calls");
        let calls = fs::read(&path).map(|bytes| text(&bytes)).unwrap_or_default();
        fs::write(&path, "").expect("the scratch directory is ours");
        calls.lines().map(str::to_owned).collect()
    }

    /// What was ordered, without the questions.
    pub(super) fn orders(&self) -> Vec<String> {
        let is_question = |call: &String| {
            call.contains("show ") || call.contains("show-user") || call.starts_with("print ")
        };
        self.calls().into_iter().filter(|call| !is_question(call)).collect()
    }

    pub(super) fn unit(&self) -> PathBuf {
        self.home.scratch().join(".config/systemd/user/outlast.service")
    }

    pub(super) fn plist(&self) -> PathBuf {
        self.home.scratch().join("Library/LaunchAgents/dev.outlast.daemon.plist")
    }
}
