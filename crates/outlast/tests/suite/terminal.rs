//! A terminal for a test to sit at: a PTY, what it shows, and the keys that are typed on it.
//!
//! Reads nothing by itself: what a client prints is taken while the test looks, so that a terminal at
//! which no person looks is one that does not take any more.

use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use vt100::{Callbacks, Parser, Screen};

use crate::harness::{Background, Home, PATIENCE, nap, until};

pub(crate) struct Terminal {
    master: OwnedFd,
    /// Kept open, as by the shell that started the client.
    shell: OwnedFd,
    model: Parser<Queries>,
    client: Option<Background>,
    /// Everything that was printed, as it came.
    printed: Vec<u8>,
}

/// What a program asked the terminal, and the terminal's answers to it.
#[derive(Default)]
struct Queries {
    answers: Vec<u8>,
}

impl Callbacks for Queries {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        if (first, second, params, last) == (None, None, &[&[6]], 'n') {
            let (row, col) = screen.cursor_position();
            self.answers.extend(format!("\x1b[{};{}R", row + 1, col + 1).bytes());
        }
    }
}

impl Terminal {
    /// A terminal at which a shell has said something.
    pub(crate) fn new(rows: u16, cols: u16) -> Self {
        let master =
            rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
                .expect("there are terminals");
        rustix::pty::grantpt(&master).expect("it is ours");
        rustix::pty::unlockpt(&master).expect("it is ours");
        rustix::io::ioctl_fionbio(&master, true).expect("it is open");
        let name = rustix::pty::ptsname(&master, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let shell = rustix::fs::open(name, flags, Mode::empty()).expect("it is unlocked");
        let (height, width) = (side(rows), side(cols));
        let model = Parser::new_with_callbacks(height, width, 0, Queries::default());
        let mut terminal = Self { master, shell, model, client: None, printed: Vec::new() };
        terminal.resize(rows, cols);
        terminal.say("$ outlast\r\n");
        terminal
    }

    /// Shows something from the shell.
    pub(crate) fn say(&self, words: &str) {
        let said = rustix::io::write(&self.shell, words.as_bytes());
        assert_eq!(said, Ok(words.len()), "there is room for some lines");
    }

    /// Starts the program as a shell would: at this terminal, which is its controlling one.
    pub(crate) fn start(&mut self, home: &Home, args: &[&str]) {
        assert!(self.client.is_none(), "one client at a time");
        let handle = || self.shell.try_clone().expect("a descriptor is free");
        let mut command = home.command("setsid");
        command
            .arg("--ctty")
            .arg(env!("CARGO_BIN_EXE_outlast"))
            .args(args)
            .env("TERM", "xterm-256color");
        command.stdin(handle()).stdout(handle()).stderr(handle());
        self.client = Some(Background(command.spawn().expect("there is a setsid")));
    }

    pub(crate) fn client(&mut self) -> &mut Child {
        &mut self.client.as_mut().expect("a client was started").0
    }

    pub(crate) fn resize(&mut self, rows: u16, cols: u16) {
        self.model.set_size(side(rows), side(cols));
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).expect("it is open");
    }

    pub(crate) fn press(&self, keys: &[u8]) {
        assert_eq!(
            rustix::io::write(&self.master, keys),
            Ok(keys.len()),
            "there is room for some keys"
        );
    }

    /// Takes what was printed, and answers what was asked.
    pub(crate) fn take(&mut self) {
        let mut chunk = [0; 4096];
        loop {
            match rustix::io::read(&self.master, &mut chunk) {
                Ok(count) => {
                    self.model.process(&chunk[..count]);
                    self.printed.extend_from_slice(&chunk[..count]);
                }
                Err(Errno::AGAIN) => break,
                Err(error) => panic!("the terminal is gone: {error}"),
            }
        }
        let answers = std::mem::take(&mut self.model.callbacks_mut().answers);
        if !answers.is_empty() {
            self.press(&answers);
        }
    }

    /// What was printed since the last time, without colours; lines as they were printed, however wide.
    pub(crate) fn printed(&mut self) -> String {
        let bytes = std::mem::take(&mut self.printed);
        let text = outlast_wire::plain::without_sequences(&bytes).replace("\r\n", "\n");
        // A line that was drawn over is what it was last.
        let last = |line: &str| line.rsplit('\r').next().unwrap_or_default().to_owned();
        text.split('\n').map(last).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn screen(&self) -> &Screen {
        self.model.screen()
    }

    /// Looks until the screen is so.
    pub(crate) fn until(&mut self, what: &str, is: impl Fn(&Screen) -> bool) {
        let started = Instant::now();
        loop {
            self.take();
            if is(self.screen()) {
                return;
            }
            let shown = self.screen().contents();
            assert!(
                started.elapsed() < PATIENCE,
                "waited too long: {what}, but there is:\n{shown}"
            );
            nap();
        }
    }

    /// Looks until this text is somewhere on the screen.
    pub(crate) fn until_shows(&mut self, wanted: &str) {
        self.until(&format!("{wanted:?} is shown"), |screen| screen.contents().contains(wanted));
    }

    /// Looks until the client is gone.
    pub(crate) fn status(&mut self) -> ExitStatus {
        let mut client = self.client.take().expect("a client was started");
        until("the client leaves", || {
            self.take();
            client.0.try_wait().expect("it is our child")
        })
    }

    pub(crate) fn code(&mut self) -> i32 {
        let status = self.status();
        self.take();
        status.code().unwrap_or_else(|| panic!("{status}: {}", self.screen().contents()))
    }

    /// Whether lines are edited, keys echoed, signals sent, and all else that a client may change.
    pub(crate) fn modes(&self) -> String {
        let Termios { input_modes, output_modes, control_modes, local_modes, .. } =
            tcgetattr(&self.shell).expect("it is open");
        format!("{input_modes:?} {output_modes:?} {control_modes:?} {local_modes:?}")
    }

    /// The terminal goes away under its client, as when its window is closed.
    pub(crate) fn hang_up(mut self) -> Option<Background> {
        self.client.take()
    }
}

/// What a screen of this size shows after these bytes: contents, colours, cursor and modes.
pub(crate) fn drawn(rows: u16, cols: u16, bytes: &str) -> String {
    let mut model = Parser::new(side(rows), side(cols), 0);
    model.process(bytes.as_bytes());
    model.screen().state_formatted()
}

fn side(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("a terminal has cells")
}
