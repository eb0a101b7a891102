//! Snapshots of a workspace: what `outlast __snapshot DIR` does, and how snapshots are read.
//!
//! It is a step of a run, below a shim like any other, so it survives a daemon's death and has a bound in time. Its
//! orders and its result are files of the step. It uses git's plumbing with a git directory of its own: no hook,
//! filter, setting or attribute of the repository takes part, and the user's index, HEAD, branches and stash are not
//! touched (decision 71).

mod area;
mod checkout;
mod failure;
mod git;
mod held;
mod list;
mod omitted;
mod place;
mod restore;
mod staged;
mod take;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use outlast_wire::snapshot::{MADE_FILE, Made, ORDERS_FILE, Orders, Todo};

pub use failure::Failure;
pub use git::Git;
pub use place::{Around, read as place_of};
pub use take::{drop_ref, pin, ref_of};

/// Carries out the orders in a step's directory, and leaves the result there.
pub fn main(dir: &Path, env: &[(OsString, OsString)]) -> ExitCode {
    let made = match orders(dir) {
        Ok(orders) => carry_out(&orders, &Around::of(env)),
        Err(failure) => failed(&failure),
    };
    let is_failed = matches!(made, Made::Failed { .. });
    let written = serde_json::to_vec(&made)
        .map_err(|error| Failure::Unreadable(error.to_string()))
        .and_then(|json| place::write(&dir.join(MADE_FILE), &json));
    match written {
        Ok(()) if is_failed => ExitCode::from(1),
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    }
}

fn orders(dir: &Path) -> Result<Orders, Failure> {
    let bytes = fs::read(dir.join(ORDERS_FILE)).map_err(Failure::io("the orders"))?;
    serde_json::from_slice(&bytes).map_err(|error| Failure::Unreadable(format!("orders: {error}")))
}

/// Does what is asked for. The caller sees to it that no other process works for the same run.
pub fn carry_out(orders: &Orders, around: &Around) -> Made {
    let done = match &orders.todo {
        Todo::Take => take::take(orders, around).map(|taken| Made::Taken(Box::new(taken))),
        Todo::Restore { to, head } => {
            restore::restore(orders, around, to, head.as_ref()).map(Made::Restored)
        }
        Todo::Look { objects } => {
            take::look(orders, around, objects).map(|tree| Made::Looked { tree })
        }
    };
    done.unwrap_or_else(|failure| failed(&failure))
}

fn failed(failure: &Failure) -> Made {
    Made::Failed { code: failure.code().to_owned(), why: failure.to_string() }
}

/// True once a snapshot was made in this git directory of ours.
pub fn has_begun(git_dir: &Path) -> bool {
    fs::read(git_dir.join("HEAD")).is_ok_and(|head| head != place::UNBORN)
}

/// A git that reads snapshots: the store of a run, and nothing of the repository's own settings.
pub fn reader(git_dir: &Path, around: &Around) -> Result<Option<Git>, Failure> {
    let Some(place) = place_of(git_dir)? else { return Ok(None) };
    let objects = match &place.repository {
        Some(repository) => repository.common.join("objects"),
        None => git_dir.join("objects"),
    };
    Ok(Some(Git::new(&around.path, git_dir).with("GIT_OBJECT_DIRECTORY", objects)))
}
