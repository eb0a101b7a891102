//! A private bus in the test's own directory, and on it a stand-in for systemd that makes no scope, writes down
//! what it was asked for, and answers, refuses or hangs as the test has it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use zbus::message::Type;
use zbus::{Connection, Message, MessageStream, ObjectPath, OwnedVariant};

use crate::harness::{Background, Home, until};

const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const OBJECT: &str = "/org/freedesktop/systemd1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manners {
    Answers,
    Refuses,
    /// Says that a unit of this name is there, unless it has a number appended.
    HasOne,
    /// Takes the order and never says another word.
    Hangs,
}

/// A scope that was asked for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) mode: String,
    pub(super) properties: Vec<String>,
    pub(super) pid: u32,
    /// Whether the shim had begun with anything by then.
    pub(super) had_begun: bool,
}

pub(super) struct Bus {
    pub(super) address: String,
    shared: Arc<Mutex<Shared>>,
    _daemon: Background,
}

struct Shared {
    manners: Manners,
    asked: Vec<Asked>,
    subscribers: usize,
}

type Transient =
    (String, String, Vec<(String, OwnedVariant)>, Vec<(String, Vec<(String, OwnedVariant)>)>);

impl Bus {
    /// `None` if there is no program to make one with.
    pub(super) fn new(home: &Home, manners: Manners) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|dir| dir.join("dbus-daemon").is_file()) {
            return None;
        }
        let (daemon, address) = start(home);
        let shared = Arc::new(Mutex::new(Shared { manners, asked: Vec::new(), subscribers: 0 }));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (served, at) = (Arc::clone(&shared), address.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(serve(&at, &served, &ready));
        });
        is_ready.recv().expect("the stand-in comes up");
        Some(Self { address, shared, _daemon: daemon })
    }

    pub(super) fn behave(&self, manners: Manners) {
        lock(&self.shared).manners = manners;
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        lock(&self.shared).asked.clone()
    }

    pub(super) fn subscribers(&self) -> usize {
        lock(&self.shared).subscribers
    }
}

fn lock(shared: &Mutex<Shared>) -> std::sync::MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(home: &Home) -> (Background, String) {
    let config = home.scratch().join("bus.conf");
    let socket = home.scratch().join("bus");
    let text = format!(
        "<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>\
         <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>\
         <allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>",
        socket.display()
    );
    fs::write(&config, text).expect("the scratch directory is ours");
    let mut command = home.command("dbus-daemon");
    command.arg("--config-file").arg(&config).args([
        "--nofork",
        "--nopidfile",
        "--print-address=1",
    ]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it was found on PATH");
    let mut address = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut address).expect("it says where it listens");
    (Background(child), address.trim().to_owned())
}

async fn serve(address: &str, shared: &Mutex<Shared>, ready: &std::sync::mpsc::Sender<()>) {
    let connection =
        zbus::connection::Builder::address(address).build().await.expect("the bus is up");
    let mut calls = MessageStream::from(&connection);
    connection.request_name("org.freedesktop.systemd1").await.expect("the name is free");
    ready.send(()).expect("the test waits");
    // Until the bus is gone with the test.
    while let Some(Ok(call)) = calls.next().await {
        if call.message_type() == Type::MethodCall
            && call.header().interface().is_some_and(|it| *it == MANAGER)
        {
            answer(&connection, &call, shared).await.expect("the bus is up");
        }
    }
}

async fn answer(
    connection: &Connection,
    call: &Message,
    shared: &Mutex<Shared>,
) -> zbus::Result<()> {
    let header = call.header();
    let member = header.member().expect("a call has a name").as_str();
    if member == "Subscribe" {
        lock(shared).subscribers += 1;
        return connection.reply(&header, &()).await;
    }
    assert_eq!(member, "StartTransientUnit");
    let (name, mode, properties, _): Transient = call.body().deserialize()?;
    let pids = properties.iter().find(|(name, _)| name == "PIDs").expect("there are PIDs");
    let pids: Vec<u32> = pids.1.try_clone()?.try_into()?;
    let names = properties.iter().map(|(name, _)| name.clone()).collect();
    let had_begun = has_begun(pids[0]);
    let asked = Asked { name: name.clone(), mode, properties: names, pid: pids[0], had_begun };
    let manners = {
        let mut shared = lock(shared);
        shared.asked.push(asked);
        shared.manners
    };
    let is_taken = manners == Manners::HasOne && name.matches('-').count() == 2;
    match manners {
        Manners::Hangs => Ok(()),
        Manners::Refuses => {
            connection
                .reply_error(&header, "org.freedesktop.DBus.Error.AccessDenied", &"not you")
                .await
        }
        Manners::HasOne if is_taken => {
            connection
                .reply_error(&header, "org.freedesktop.systemd1.UnitExists", &"it is there")
                .await
        }
        Manners::Answers | Manners::HasOne => {
            let job = ObjectPath::try_from("/org/freedesktop/systemd1/job/7")?;
            connection.reply(&header, &job).await?;
            let none = None::<zbus::names::BusName<'_>>;
            connection
                .emit_signal(
                    none,
                    OBJECT,
                    MANAGER,
                    "JobRemoved",
                    &(7u32, &job, name.as_str(), "done"),
                )
                .await
        }
    }
}

/// A shim writes down that it begins before it does.
fn has_begun(shim: u32) -> bool {
    // The kernel has a command line for a new program only some time after its process is known.
    let line = until("the shim is its program", || {
        let line = fs::read(format!("/proc/{shim}/cmdline")).expect("the shim is there");
        Some(line).filter(|line| !line.is_empty())
    });
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    assert_eq!(words[1], b"__shim", "it is a shim that is moved");
    let dir = std::path::PathBuf::from(String::from_utf8_lossy(words[2]).into_owned());
    fs::metadata(dir.join("events.jsonl")).is_ok_and(|file| file.len() > 0)
}
