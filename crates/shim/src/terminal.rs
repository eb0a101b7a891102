//! The terminal of a terminal run: a PTY, the model of its screen, and the keys on their way to it.
//!
//! Never blocks: keys that the program does not read are kept up to a bound and then dropped, as a real
//! terminal line does.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use outlast_wire::shim::Window;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::command::Failure;
use crate::screen::{Screen, clamp};
use crate::spawn::no_resources;
use crate::tolerate;

const KEYS_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Terminal {
    master: OwnedFd,
    /// Kept open while the program runs: a terminal that nothing has open ends its reader's output for good,
    /// and the program may open it again.
    slave: Option<OwnedFd>,
    screen: Screen,
    keys: Vec<u8>,
}

/// Whether the shim speaks for the terminal: only while no real one is attached, which would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    Ours,
    Viewers,
}

impl Terminal {
    /// A new terminal, and its slave side for the child.
    pub(crate) fn open(window: Window) -> Result<(Self, OwnedFd), Failure> {
        let (master, slave) = open_pair().map_err(no_resources)?;
        let kept = slave.try_clone().map_err(no_resources)?;
        let (screen, keys) = (Screen::new(window), Vec::new());
        let terminal = Self { master, slave: Some(kept), screen, keys };
        terminal.set_kernel_size(window);
        Ok((terminal, slave))
    }

    /// The program has ended: from here on the terminal is over once nothing else has it open.
    pub(crate) fn let_go(&mut self) {
        self.slave = None;
    }

    /// The side that the program's output comes from, for reading.
    pub(crate) fn reader(&self) -> Result<OwnedFd, Failure> {
        self.master.try_clone().map_err(no_resources)
    }

    pub(crate) fn show(&mut self, bytes: &[u8], answers: Answers) {
        let said = self.screen.show(bytes);
        match answers {
            Answers::Ours => self.press(&said),
            Answers::Viewers => {}
        }
    }

    /// The kernel tells the program with SIGWINCH.
    pub(crate) fn resize(&mut self, window: Window) {
        self.screen.resize(window);
        self.set_kernel_size(window);
    }

    pub(crate) fn repaint(&mut self) -> Vec<u8> {
        self.screen.repaint()
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        if self.keys.len() + keys.len() <= KEYS_MAX {
            self.keys.extend_from_slice(keys);
        }
        self.flush_keys();
    }

    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    pub(crate) fn flush_keys(&mut self) {
        while !self.keys.is_empty() {
            match rustix::io::write(&self.master, &self.keys) {
                Ok(count) => drop(self.keys.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // No process has the terminal open any more.
                Err(_) => self.keys.clear(),
            }
        }
    }

    fn set_kernel_size(&self, window: Window) {
        let Window { rows, cols } = clamp(window);
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        // Only a terminal that is gone refuses, and then its size does not matter.
        tolerate(rustix::termios::tcsetwinsize(&self.master, size));
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

fn open_pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let master = retry_on_intr(|| rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY))?;
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = retry_on_intr(|| rustix::fs::open(&name, flags, Mode::empty()))?;
    rustix::io::ioctl_fionbio(&master, true)?;
    Ok((master, slave))
}
