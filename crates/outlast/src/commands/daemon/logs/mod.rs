//! `outlast daemon logs`: the daemon's log, read from its files, so that a daemon that does not start
//! can be looked into as well.

mod chain;
mod line;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Duration;

use outlast_client::problem::Problem;
use tokio::time::sleep;

use self::chain::{Chain, Next, Reader};
use self::line::{Filter, Line};
use crate::args::DaemonLogs;
use crate::output::bytes::{self, Target};
use crate::world::World;
use crate::{Answer, output};

/// Between two looks for what has come.
const LOOK: Duration = Duration::from_millis(250);

pub(crate) async fn logs(world: &World, args: DaemonLogs) -> Answer {
    let path = world.client.layout()?.daemon_log();
    let chain = Chain::of(&path);
    let told = |error: io::Error| cannot(&path, &error);
    let since = args.since.map(|since| since.timestamp(&world.now_here()));
    let mut show = Show { filter: Filter::new(args.level, since), json: args.json };
    let mut readers = chain.open().map_err(told)?;
    if readers.is_empty() && !args.follow {
        return Err(no_log(&path));
    }
    let mut kept = VecDeque::new();
    for reader in &mut readers {
        loop {
            let lines = reader.lines().map_err(told)?;
            if lines.is_empty() {
                break;
            }
            print_or_keep(&mut show, &lines, args.tail, &mut kept).await?;
        }
    }
    let mut current = readers.pop();
    if !args.follow {
        // The process that wrote the last line was cut short, or is just writing it.
        let rest = current.as_mut().and_then(Reader::rest);
        print_or_keep(&mut show, rest.as_slice(), args.tail, &mut kept).await?;
    }
    print_all(kept.into_iter().collect()).await?;
    if !args.follow {
        return Ok(0);
    }
    loop {
        let lines = chain.more(&mut current).map_err(told)?;
        match lines {
            Next::Lines(lines) => print_all(show.all(&lines)).await?,
            Next::Gap => output::tell("outlast: some lines were gone before they could be read"),
            Next::Nothing => sleep(LOOK).await,
        }
    }
}

/// Prints what is to be shown, or keeps the last of it if only that is wanted.
async fn print_or_keep(
    show: &mut Show,
    lines: &[Vec<u8>],
    tail: Option<usize>,
    kept: &mut VecDeque<String>,
) -> Result<(), Problem> {
    let shown = show.all(lines);
    let Some(most) = tail else { return print_all(shown).await };
    kept.extend(shown);
    kept.drain(..kept.len().saturating_sub(most));
    Ok(())
}

async fn print_all(shown: Vec<String>) -> Result<(), Problem> {
    if shown.is_empty() {
        return Ok(());
    }
    bytes::stream(Target::Stdout, shown.concat().into_bytes()).await.map(drop)
}

/// Which lines, and how.
struct Show {
    filter: Filter,
    json: bool,
}

impl Show {
    fn all(&mut self, lines: &[Vec<u8>]) -> Vec<String> {
        let lines = lines.iter().map(|bytes| Line::read(&String::from_utf8_lossy(bytes)));
        let shown = lines.filter(|line| self.filter.passes(line));
        shown.map(|line| if self.json { line.json() } else { line.text() } + "\n").collect()
    }
}

fn no_log(path: &Path) -> Problem {
    Problem::refusal("no_log", format_args!("there is no log at {}", path.display()))
        .hint("a daemon that was never started has written none")
}

fn cannot(path: &Path, error: &io::Error) -> Problem {
    Problem::failure(format_args!("cannot read {}: {error}", path.display()))
}
