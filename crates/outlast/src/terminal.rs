//! The user's own terminal, while it shows a run's: raw, and put back on every way out.

use std::io::{IsTerminal, Read};
use std::sync::{Mutex, Once, PoisonError};

use outlast_client::problem::Problem;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use crate::output::bytes::{Target, write_all};
use crate::output::tell;
use crate::switch::Switch;

/// Switches off whatever a program may have switched on. The scroll region goes with the cursor, so
/// that is saved and restored around it.
const RESET: &str = "\x1b7\x1b[r\x1b8\x1b(B\x1b[?25h\x1b[?7h\x1b[4l\x1b[0 q\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[<u\x1b[>4m\x1b[?1l\x1b>\x1b[0m";

/// Goes back to the shell's screen, and to the cursor that was kept with it. Not for a terminal that is
/// on that screen: some would put its cursor where it was when they last left it.
const BACK: &str = "\x1b[?1049l";

/// More keys than this wait unread only while the daemon is away.
const KEYS_WAITING: usize = 64;

/// How the terminal was, kept where a panic can find it.
static ORIGINAL: Mutex<Option<Termios>> = Mutex::new(None);

/// Which of its two screens the terminal shows, for the same purpose.
static SWITCH: Mutex<Switch> = Mutex::new(Switch::new());

/// True if both ends of a conversation are there.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// A raw terminal. It is itself again when this is dropped.
pub(crate) struct Raw(());

impl Raw {
    pub(crate) fn enter() -> Result<Self, Problem> {
        let original = tcgetattr(rustix::stdio::stdin()).map_err(cannot)?;
        let mut raw = original.clone();
        raw.make_raw();
        restore_on_panic();
        *ORIGINAL.lock().unwrap_or_else(PoisonError::into_inner) = Some(original);
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw).map_err(cannot)?;
        Ok(Self(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let original = ORIGINAL.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(original) = original else { return };
    let mut switch = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    let reset = [if switch.is_alternate() { BACK } else { "" }, RESET].concat();
    switch.read(reset.as_bytes());
    drop(switch);
    let is_reset = write_all(Target::Stdout, reset.as_bytes()).is_ok();
    let is_restored = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &original).is_ok();
    // A terminal that was closed is of no more interest; one that is still there is.
    if is_reset && !is_restored {
        tell("outlast: the terminal could not be put back\nhint: type reset");
    }
}

/// Which of its two screens the terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    ShellsScreen,
    AlternateScreen,
}

/// Notes what is about to be shown, and says where that will be.
pub(crate) fn about_to_show(bytes: &[u8]) -> Shows {
    let mut switch = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    switch.read(bytes);
    if switch.is_alternate() { Shows::AlternateScreen } else { Shows::ShellsScreen }
}

/// A release build aborts on a panic and drops nothing, so the hook puts the terminal back.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

/// Keys as they are typed, until standard input ends.
///
/// A thread of its own reads them: a terminal shared with a shell must not be made non-blocking. It
/// ends with the process.
pub(crate) fn keys() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(KEYS_WAITING);
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = std::io::stdin().lock().read(&mut chunk) {
            if sender.blocking_send(chunk[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

fn cannot(error: rustix::io::Errno) -> Problem {
    Problem::failure(format_args!("cannot use the terminal: {error}"))
}
