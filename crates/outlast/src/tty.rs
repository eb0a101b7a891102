//! Being attached to a run's terminal: its screen here, our keys and window there.

use std::cell::Cell;
use std::time::Duration;

use outlast_client::ask::{Ask, run_path};
use outlast_client::connection::Duplex;
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::{RunView, TTY_UPGRADE, exit_status};
use outlast_wire::shim::{Decoder, Frame, News, Order, Window};
use outlast_wire::words::Code;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::Answer;
use crate::attached::{self, Watched};
use crate::keys::{self, Keys};
use crate::output::bytes::{self, Target};
use crate::progress::{About, Progress};
use crate::signals::{self, Detach};
use crate::terminal::{self, Raw, Shows};
use crate::world::{self, World};

/// Between two looks for the terminal of an attempt that has not started yet.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
const ANY_WINDOW: Window = Window { rows: 24, cols: 80 };

/// Shows a run's terminal until the run ends or rests, or a signal asks the client to leave.
pub(crate) async fn attach(
    world: &World,
    session: Session<'_>,
    run: &Watched,
    mut detach: Detach,
) -> Answer {
    let raw = Raw::enter()?;
    let mut seat = Seat { keys: terminal::keys(), resizes: signals::window_changes()? };
    let sight = Cell::new(Sight::Nothing);
    let left = tokio::select! {
        biased;
        () = detach.asked() => Left::ByChoice,
        left = stay(session, &run.id, &mut seat, &sight) => left?,
    };
    drop(raw);
    match left {
        Left::ByChoice => {
            // The cursor is wherever the run had it, and so is what the run showed below.
            drop(bytes::write_all(Target::Stdout, b"\r\n\x1b[J"));
            Ok(attached::detached(run))
        }
        // It was over before we sat down, and what it printed is on record.
        Left::Over if sight.get() == Sight::Nothing => {
            let progress = Progress::new(world, &run.id, About::COMMAND);
            attached::attach(world, Session::new(&world.client), run, &progress, detach).await
        }
        Left::Over => attached::conclude(world, run, detach).await,
    }
}

/// What the user's side of the terminal brings.
struct Seat {
    keys: mpsc::Receiver<Vec<u8>>,
    resizes: Signal,
}

/// What has been seen of the run here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Nothing,
    Screen,
}

/// Why there is nothing more to show.
enum Left {
    ByChoice,
    Over,
}

/// Shows one attempt's terminal after another, and the same one again after the daemon was away.
async fn stay(
    mut session: Session<'_>,
    run: &str,
    seat: &mut Seat,
    sight: &Cell<Sight>,
) -> Result<Left, Problem> {
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(stream) = sit_down(&mut session, run).await? {
            if let Left::ByChoice = converse(stream, seat, sight).await? {
                return Ok(Left::ByChoice);
            }
            pause = FIRST_PAUSE;
        }
        let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
        if exit_status(&view.state, view.reason_code.as_ref()).is_some() {
            return Ok(Left::Over);
        }
        if let Some(Left::ByChoice) = wait_for_leave(seat, pause).await {
            return Ok(Left::ByChoice);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Keys typed while there is no terminal have nowhere to go; only the wish to leave counts.
async fn wait_for_leave(seat: &mut Seat, pause: Duration) -> Option<Left> {
    let leave = async {
        while let Some(typed) = seat.keys.recv().await {
            if let Keys::Leave(_) = keys::read(&typed) {
                return;
            }
        }
    };
    tokio::select! {
        () = leave => Some(Left::ByChoice),
        () = sleep(pause) => None,
    }
}

/// A stream to the run's terminal; `None` while it has none.
async fn sit_down(session: &mut Session<'_>, run: &str) -> Result<Option<Duplex>, Problem> {
    let window = world::window().unwrap_or(ANY_WINDOW);
    let ask = Ask::get(&run_path(run, "/attach"))
        .query("rows", window.rows)
        .query("cols", window.cols)
        .upgrade(TTY_UPGRADE);
    let reply = match session.open(&ask).await {
        Ok(reply) => reply,
        Err(problem) if is_not_now(&problem) => return Ok(None),
        Err(problem) => return Err(problem),
    };
    // A connection that breaks in the middle of the handshake is one more that is asked for again.
    Ok(reply.upgraded().await)
}

/// The run goes on and has no terminal just now: between two attempts, or before the first.
fn is_not_now(problem: &Problem) -> bool {
    problem.is(Code::NoTerminal)
}

async fn converse(stream: Duplex, seat: &mut Seat, sight: &Cell<Sight>) -> Result<Left, Problem> {
    let (screen, hands) = tokio::io::split(stream);
    tokio::select! {
        over = show(screen, sight) => over.map(|()| Left::Over),
        left = forward(hands, seat) => Ok(left),
    }
}

/// Paints what comes until no more does.
async fn show(mut screen: ReadHalf<Duplex>, sight: &Cell<Sight>) -> Result<(), Problem> {
    let mut decoder = Decoder::default();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let count = match screen.read(&mut chunk).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => count,
        };
        decoder.feed(&chunk[..count]);
        let mut painted = Vec::new();
        while let Some(frame) = decoder.next::<News>().map_err(garbled)? {
            match frame {
                Frame::Bytes(bytes) => painted.extend_from_slice(&bytes),
                // The end of the stream says as much; what it means is asked of the daemon.
                Frame::Message(_) => {}
            }
        }
        if painted.is_empty() {
            continue;
        }
        let shows = terminal::about_to_show(&painted);
        if sight.replace(Sight::Screen) == Sight::Nothing && shows == Shows::ShellsScreen {
            make_room()?;
        }
        bytes::stream(Target::Stdout, painted).await?;
    }
}

/// Scrolls what the shell has on its screen out of the way of what is going to be painted over it.
fn make_room() -> Result<(), Problem> {
    let rows = world::window().unwrap_or(ANY_WINDOW).rows;
    let lines = "\n".repeat(usize::from(rows));
    bytes::write_all(Target::Stdout, lines.as_bytes()).map_err(|error| bytes::unwritable(&error))
}

/// Sends keys and window sizes until the person wants to leave.
async fn forward(mut hands: WriteHalf<Duplex>, seat: &mut Seat) -> Left {
    loop {
        let (frame, leaves) = tokio::select! {
            typed = seat.keys.recv() => match typed.as_deref().map(keys::read) {
                Some(Keys::Typed(typed)) => (Frame::Bytes(typed.to_vec()), false),
                Some(Keys::Leave(typed)) => (Frame::Bytes(typed.to_vec()), true),
                None => return Left::ByChoice,
            },
            _ = seat.resizes.recv() => (resize(), false),
        };
        let bytes = frame.encode().expect("one read of a terminal is shorter than a frame may be");
        let sent = hands.write_all(&bytes).await.is_ok() && hands.flush().await.is_ok();
        if leaves {
            return Left::ByChoice;
        }
        if !sent {
            // The other direction ends too, and says when.
            std::future::pending::<()>().await;
        }
    }
}

fn resize() -> Frame<Order> {
    Frame::Message(Order::Resize { window: world::window().unwrap_or(ANY_WINDOW) })
}

fn garbled(error: outlast_wire::shim::FrameError) -> Problem {
    Problem::unreachable(format_args!("its terminal stream cannot be read: {error}"))
}
