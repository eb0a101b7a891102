//! A terminal of a test's own in tmux: what stands on it, and the keys that are typed.
//!
//! Each has a server on a socket in the test's directory, which is ended with the test.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::harness::{Home, PATIENCE, nap, skip, text};

pub(crate) struct Tmux<'h> {
    home: &'h Home,
    socket: PathBuf,
}

impl<'h> Tmux<'h> {
    /// A terminal of this size in which this shell script runs, and stays when it is over. `None` where
    /// there is no tmux.
    pub(crate) fn start(home: &'h Home, columns: u16, rows: u16, script: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skip("there is no tmux to sit at; install the package of that name");
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // The last one in this directory may still be about to leave.
        let name = format!("tmux{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let tmux = Self { home, socket: home.scratch().join(name) };
        let (x, y) = (columns.to_string(), rows.to_string());
        let script = format!("{script}\nexec cat");
        tmux.ok(&[
            "-f",
            "/dev/null",
            "-u",
            "new-session",
            "-d",
            "-x",
            &x,
            "-y",
            &y,
            "sh",
            "-c",
            &script,
        ]);
        Some(tmux)
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.command().args(args).output().expect("there is a tmux");
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn command(&self) -> Command {
        let mut command = self.home.command("tmux");
        command.arg("-S").arg(&self.socket).env("TERM", "xterm-256color");
        command
    }

    /// Presses keys by their names in tmux: `Enter`, `Escape`, `C-c`, `x`.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.ok(&[&["send-keys"], keys].concat());
    }

    pub(crate) fn type_text(&self, words: &str) {
        self.ok(&["send-keys", "-l", words]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.ok(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    pub(crate) fn screen(&self) -> String {
        self.ok(&["capture-pane", "-p"])
    }

    /// The screen with its colours.
    pub(crate) fn painted(&self) -> String {
        self.ok(&["capture-pane", "-p", "-e"])
    }

    /// One of tmux's own variables.
    pub(crate) fn variable(&self, name: &str) -> String {
        self.ok(&["display-message", "-p", &format!("#{{{name}}}")]).trim().to_owned()
    }

    /// Looks until the screen is so, and gives it.
    pub(crate) fn until(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if is(&screen) {
                return screen;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "waited too long: {what}, but there is:\n{screen}"
            );
            nap();
        }
    }

    /// Looks until this is somewhere on the screen.
    pub(crate) fn shows(&self, wanted: &str) -> String {
        self.until(&format!("{wanted:?} is shown"), |screen| screen.contains(wanted))
    }

    pub(crate) fn shows_no_more(&self, unwanted: &str) -> String {
        self.until(&format!("{unwanted:?} is gone"), |screen| !screen.contains(unwanted))
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        // It may have ended with its last terminal.
        let _gone = self.command().arg("kill-server").output();
    }
}
