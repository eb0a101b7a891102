//! The one thread that writes.
//!
//! Takes whatever is waiting, writes it in one transaction and answers every caller once that is durable.
//! While the disk is busy with one group the next one gathers, so no caller ever waits for a group to fill.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;

use super::job::WriteJob;
use super::mend::{Open, Unmended, is_large, is_sound, mend};
use super::opened::Remedy;
use super::read::Readers;
use super::transaction::Group;
use crate::{Depth, Error};

/// Jobs that one transaction takes at most.
const GROUP: usize = 1024;

/// How often a commit is repeated whose sync was interrupted.
const MOST_INTERRUPTED: u32 = 16;

pub(super) struct Writer {
    path: PathBuf,
    hand: Hand,
    readers: Arc<Readers>,
    commits: Arc<AtomicU64>,
    mended: Mended,
}

/// What the writer has of the journal.
enum Hand {
    Open(Box<Open>),
    /// The files are no longer ours, and what they held is no longer open.
    Gone(Error),
}

/// What was put right since the journal was opened, in words.
pub(super) type Mended = Arc<Mutex<Vec<String>>>;

impl Writer {
    pub(super) fn new(
        path: &Path,
        connection: Connection,
        readers: Arc<Readers>,
        commits: Arc<AtomicU64>,
        mended: Mended,
    ) -> Result<Self, Error> {
        let open = Box::new(Open::new(path, connection)?);
        readers.open_again(Some(open.opened.clone()));
        Ok(Self { path: path.to_owned(), hand: Hand::Open(open), readers, commits, mended })
    }

    /// Writes until no caller can send jobs any more and everything that was sent is done.
    pub(super) fn run(mut self, inbox: &Receiver<WriteJob>) {
        while let Ok(first) = inbox.recv() {
            let group = std::iter::once(first).chain(inbox.try_iter().take(GROUP - 1)).collect();
            self.carry_out(group);
        }
        // Closing removes the log by its name, which must be ours.
        let is_in_place = self.see_to_place(Depth::Names).is_ok();
        match self.hand {
            Hand::Open(open) if is_in_place => open.checkpointer.finish(&open.connection),
            Hand::Open(open) => open.close(),
            Hand::Gone(_) => {}
        }
    }

    fn carry_out(&mut self, group: Vec<WriteJob>) {
        let depth = group.iter().filter_map(|job| job.work.depth()).max();
        let (looks, group): (Vec<_>, Vec<_>) =
            group.into_iter().partition(|job| job.work.depth().is_some());
        let seen = self.see_to_place(depth.unwrap_or(Depth::Names));
        looks.into_iter().for_each(|job| (job.reply)(seen.clone().map(|()| 0)));
        if group.is_empty() {
            return;
        }
        match seen.and_then(|()| self.commit_in_place(&group)) {
            Ok(answers) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
                let jobs = group.len();
                group.into_iter().zip(answers).for_each(|(job, answer)| (job.reply)(answer));
                if let Hand::Open(open) = &mut self.hand {
                    let pages = open.log_pages.load(Ordering::Relaxed);
                    open.checkpointer.log_has(pages, jobs, &open.connection);
                }
            }
            Err(error) => group.into_iter().for_each(|job| (job.reply)(Err(error.clone()))),
        }
    }

    /// Commits, and says so only if the files that hold it are where the next daemon looks for them.
    fn commit_in_place(&mut self, group: &[WriteJob]) -> Result<Vec<Result<u64, Error>>, Error> {
        let answers = match &self.hand {
            Hand::Open(open) => open.commit(group),
            Hand::Gone(error) => Err(error.clone()),
        };
        // If the files were taken away meanwhile, the commit is in the copy that takes their place.
        self.see_to_place(Depth::Names)?;
        answers
    }

    /// Puts the files back in their place if they are not there. An error says that nothing may be acknowledged.
    fn see_to_place(&mut self, depth: Depth) -> Result<(), Error> {
        let open = match &mut self.hand {
            Hand::Open(open) => open,
            Hand::Gone(error) => return Err(error.clone()),
        };
        let found = open.opened.look()?;
        let remedy = match found.remedy() {
            Remedy::Nothing if depth == Depth::Names || is_large(&self.path)? => return Ok(()),
            // Another program may have made it smaller and left it whole, or larger and damaged it.
            Remedy::Nothing | Remedy::Replace if is_sound(&self.path)? => {
                return open.accept(&self.path);
            }
            Remedy::Nothing | Remedy::Replace => Remedy::Replace,
            other => other,
        };
        let unsaved = |error: Error| Error::Unsaved {
            path: self.path.clone(),
            what: found.says().to_owned(),
            why: error.to_string(),
        };
        self.readers.shut().map_err(unsaved)?;
        let open = match std::mem::replace(&mut self.hand, Hand::Gone(Error::Closed)) {
            Hand::Open(open) => open,
            Hand::Gone(_) => unreachable!("it was open just now"),
        };
        let (hand, answer) = match mend(&self.path, open, found, remedy) {
            Ok((open, words)) => {
                self.readers.open_again(Some(open.opened.clone()));
                self.mended.lock().expect("nothing panics while it holds this").push(words);
                (Hand::Open(open), Ok(()))
            }
            Err(Unmended::ForNow(open, error)) => {
                self.readers.open_again(None);
                (Hand::Open(open), Err(unsaved(error)))
            }
            Err(Unmended::ForGood(error)) => {
                self.readers.refuse(error.clone());
                (Hand::Gone(error.clone()), Err(error))
            }
        };
        self.hand = hand;
        answer
    }
}

impl Open {
    /// One answer for each job if they are durable. A refused job has written nothing, so it stands in no
    /// other's way. If one of several cannot be written, each is written on its own, and only that one fails.
    fn commit(&self, jobs: &[WriteJob]) -> Result<Vec<Result<u64, Error>>, Error> {
        for _ in 0..MOST_INTERRUPTED {
            match self.commit_once(jobs) {
                // SQLite does not repeat a sync that a signal interrupted. Nothing of the transaction is in the journal then.
                Err(Error::Io(_)) if self.was_interrupted() => {}
                answer => return answer,
            }
        }
        self.commit_once(jobs)
    }

    /// True if the last call to the system that failed was interrupted.
    fn was_interrupted(&self) -> bool {
        #[expect(unsafe_code, reason = "rusqlite has no other way to the error of the system")]
        // SAFETY: the connection is open for as long as it is borrowed, and only a number is read.
        let errno = unsafe { rusqlite::ffi::sqlite3_system_errno(self.connection.handle()) };
        io::Error::from_raw_os_error(errno).kind() == io::ErrorKind::Interrupted
    }

    fn commit_once(&self, jobs: &[WriteJob]) -> Result<Vec<Result<u64, Error>>, Error> {
        match self.transact(jobs, Apart::No) {
            Err(Stopped::ByJob(_)) if jobs.len() > 1 => {
                self.transact(jobs, Apart::Yes).map_err(Stopped::into_error)
            }
            other => other.map_err(Stopped::into_error),
        }
    }

    fn transact(
        &self,
        jobs: &[WriteJob],
        apart: Apart,
    ) -> Result<Vec<Result<u64, Error>>, Stopped> {
        let committed = self.write(jobs, apart).and_then(|answers| {
            self.batch("COMMIT")?;
            Ok(answers)
        });
        if committed.is_err() && !self.connection.is_autocommit() {
            // If even this fails, the next BEGIN does too, and says so to the callers that wait for it.
            drop(self.batch("ROLLBACK"));
        }
        committed
    }

    fn write(&self, jobs: &[WriteJob], apart: Apart) -> Result<Vec<Result<u64, Error>>, Stopped> {
        self.batch("BEGIN IMMEDIATE")?;
        let mut group = Group::new(&self.connection, &self.path)?;
        let mut answers = Vec::with_capacity(jobs.len());
        for job in jobs {
            answers.push(match apart {
                Apart::No => match group.write(&job.work) {
                    Err(error) if !error.is_refusal() => return Err(Stopped::ByJob(error)),
                    answer => answer,
                },
                Apart::Yes => self.write_apart(&mut group, job)?,
            });
        }
        Ok(answers)
    }

    /// What goes wrong with this job undoes this job alone.
    fn write_apart(
        &self,
        group: &mut Group<'_>,
        job: &WriteJob,
    ) -> Result<Result<u64, Error>, Stopped> {
        self.batch("SAVEPOINT one_job")?;
        let answer = group.write(&job.work);
        if let Err(error) = &answer {
            // Some failures, such as a full disk, make SQLite undo the whole transaction by itself.
            if self.connection.is_autocommit() {
                return Err(Stopped::Whole(error.clone()));
            }
            self.batch("ROLLBACK TO one_job")?;
        }
        self.batch("RELEASE one_job")?;
        Ok(answer)
    }

    fn batch(&self, statement: &'static str) -> Result<(), Error> {
        let run = || self.connection.prepare_cached(statement)?.execute([]).map(drop);
        run().map_err(|error| Error::from_sql(&self.path, &error))
    }
}

/// Whether each job is undone on its own if it fails, which costs two statements a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Apart {
    No,
    Yes,
}

/// Why nothing of a group was written.
enum Stopped {
    /// One of its jobs could not be written.
    ByJob(Error),
    Whole(Error),
}

impl Stopped {
    fn into_error(self) -> Error {
        match self {
            Self::ByJob(error) | Self::Whole(error) => error,
        }
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Whole(error)
    }
}
