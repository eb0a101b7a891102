//! Codes, sessions and tickets: who has been let in.
//!
//! A code is good once and for two minutes; it buys a session. A ticket is good once and for half a minute; a session
//! buys it for one terminal, because a browser's WebSocket carries no header of the page. Only hashes of secrets are
//! kept, in memory, so that every session ends with the process. Reads no clock: the time is an argument.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use outlast_client::problem::Problem;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// How long a code can be used.
pub(crate) const CODE_LASTS: Duration = Duration::from_secs(120);
/// Codes that may be open at once; the oldest goes first.
const MOST_CODES: usize = 16;
/// After this many wrong codes within [`DOOR_CLOSES`], no code is taken for as long.
const MOST_WRONG: usize = 10;
const DOOR_CLOSES: Duration = Duration::from_secs(60);
/// Sessions at once; the one that was idle for longest goes first.
const MOST_SESSIONS: usize = 64;
const SESSION_IDLES: Duration = Duration::from_secs(7 * 24 * 3600);
const SESSION_LASTS: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long a ticket can be used.
const TICKET_LASTS: Duration = Duration::from_secs(30);
/// Tickets that may be open at once; the oldest goes first.
const MOST_TICKETS: usize = 64;

pub(crate) type Hash = [u8; 32];

/// Names a session without being its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionId(Hash);

/// What a ticket lets in to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) run: String,
    pub(crate) keys: bool,
    pub(crate) session: SessionId,
    /// Who it is, for the journal.
    pub(crate) via: String,
}

#[derive(Debug)]
struct Ticket {
    hash: Hash,
    until: Instant,
    seat: Seat,
}

#[derive(Debug, Default)]
pub(crate) struct Access {
    codes: Vec<Code>,
    sessions: Vec<Session>,
    tickets: Vec<Ticket>,
    /// When wrong codes came lately.
    wrong: VecDeque<Instant>,
}

#[derive(Debug)]
struct Code {
    hash: Hash,
    until: Instant,
}

/// Whose a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// The user of this machine, who has had a link.
    Owner,
    /// A person whom the proxy names.
    Named(String),
}

#[derive(Debug)]
struct Session {
    hash: Hash,
    since: Instant,
    seen: Instant,
    who: Who,
}

/// Why a code buys nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// It was never given out, was used, or is too old.
    WrongCode,
    TooManyWrong,
    /// The system has no randomness to give.
    NoChance(String),
}

impl Access {
    /// A new code, to be handed to a person.
    pub(crate) fn code(&mut self, now: Instant) -> Result<String, Problem> {
        let code = secret::<16>().map_err(Problem::failure)?;
        self.codes.retain(|code| now < code.until);
        if self.codes.len() >= MOST_CODES {
            self.codes.remove(0);
        }
        self.codes.push(Code { hash: hash(&code), until: now + CODE_LASTS });
        Ok(code)
    }

    /// The secret of a new session, for a code that is good. The code is used up.
    pub(crate) fn session(&mut self, code: &str, now: Instant) -> Result<String, NoSession> {
        while self.wrong.front().is_some_and(|at| now.duration_since(*at) >= DOOR_CLOSES) {
            self.wrong.pop_front();
        }
        if self.wrong.len() >= MOST_WRONG {
            return Err(NoSession::TooManyWrong);
        }
        self.codes.retain(|code| now < code.until);
        let wanted = hash(code);
        let Some(found) = self.codes.iter().position(|code| is_same(&code.hash, &wanted)) else {
            self.wrong.push_back(now);
            return Err(NoSession::WrongCode);
        };
        self.codes.remove(found);
        self.enter(Who::Owner, now)
    }

    /// The secret of a new session, for a person who is known.
    pub(crate) fn enter(&mut self, who: Who, now: Instant) -> Result<String, NoSession> {
        let secret = secret::<32>().map_err(NoSession::NoChance)?;
        if self.sessions.len() >= MOST_SESSIONS {
            self.sessions.sort_by_key(|session| session.seen);
            self.sessions.remove(0);
        }
        self.sessions.push(Session { hash: hash(&secret), since: now, seen: now, who });
        Ok(secret)
    }

    /// Whose session this is the secret of, if it goes on.
    pub(crate) fn admit(&mut self, secret: &str, now: Instant) -> Option<Who> {
        self.sessions.retain(|session| {
            now.duration_since(session.seen) < SESSION_IDLES
                && now.duration_since(session.since) < SESSION_LASTS
        });
        let wanted = hash(secret);
        let mut found = self.sessions.iter_mut().filter(|it| is_same(&it.hash, &wanted));
        found.next().map(|session| {
            session.seen = now;
            session.who.clone()
        })
    }

    /// The session of this secret, if it goes on.
    pub(crate) fn session_of(&mut self, secret: &str, now: Instant) -> Option<SessionId> {
        self.admit(secret, now).map(|_| SessionId(hash(secret)))
    }

    /// True while this session goes on. Looking does not count as using it.
    pub(crate) fn goes_on(&self, session: SessionId) -> bool {
        self.sessions.iter().any(|it| is_same(&it.hash, &session.0))
    }

    /// A ticket for one terminal.
    pub(crate) fn ticket(&mut self, seat: Seat, now: Instant) -> Result<String, Problem> {
        let ticket = secret::<16>().map_err(Problem::failure)?;
        self.tickets.retain(|ticket| now < ticket.until);
        if self.tickets.len() >= MOST_TICKETS {
            self.tickets.remove(0);
        }
        self.tickets.push(Ticket { hash: hash(&ticket), until: now + TICKET_LASTS, seat });
        Ok(ticket)
    }

    /// What a ticket for this run is good for. It is used up, also by asking for another run with it.
    pub(crate) fn redeem(&mut self, ticket: &str, run: &str, now: Instant) -> Option<Seat> {
        self.tickets.retain(|ticket| now < ticket.until);
        let wanted = hash(ticket);
        let found = self.tickets.iter().position(|ticket| is_same(&ticket.hash, &wanted))?;
        let seat = self.tickets.remove(found).seat;
        Some(seat).filter(|seat| seat.run == run && self.goes_on(seat.session))
    }

    /// Ends the session with this secret.
    pub(crate) fn end(&mut self, secret: &str) {
        let wanted = hash(secret);
        self.sessions.retain(|session| !is_same(&session.hash, &wanted));
    }
}

pub(crate) fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Takes the same time wherever the two differ.
pub(crate) fn is_same(one: &Hash, other: &Hash) -> bool {
    one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// `N` random bytes, in hexadecimal.
pub(crate) fn secret<const N: usize>() -> Result<String, String> {
    let mut chance = [0; N];
    let got = rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::empty());
    if got != Ok(N) {
        return Err("the system has no randomness for a secret".to_owned());
    }
    let mut text = String::with_capacity(2 * N);
    for byte in chance {
        write!(text, "{byte:02x}").expect("a string takes any text");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        // The tests need times that lie apart, and no particular one.
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *START.get_or_init(Instant::now) + Duration::from_secs(seconds)
    }

    #[test]
    fn a_code_is_good_once_and_for_two_minutes() {
        let mut access = Access::default();
        let (first, second) = (access.code(at(0)).unwrap(), access.code(at(0)).unwrap());
        assert_eq!((first.len(), first == second), (32, false));
        let secret = access.session(&first, at(119)).unwrap();
        assert_eq!(secret.len(), 64);
        assert_eq!(access.session(&first, at(119)), Err(NoSession::WrongCode), "it is used up");
        assert_eq!(access.session(&second, at(120)), Err(NoSession::WrongCode), "it is too old");
        assert!(access.admit(&secret, at(120)).is_some());
        assert!(access.admit(&first, at(120)).is_none(), "a code is no secret of a session");
        assert!(access.admit("", at(120)).is_none());
        access.end(&secret);
        assert!(access.admit(&secret, at(120)).is_none());
    }

    #[test]
    fn a_ticket_is_good_once_for_half_a_minute_for_its_run_and_with_its_session() {
        let mut access = Access::default();
        let code = access.code(at(0)).unwrap();
        let secret = access.session(&code, at(0)).unwrap();
        let session = access.session_of(&secret, at(0)).unwrap();
        let seat = |keys| Seat { run: "k3m".to_owned(), keys, session, via: "web".to_owned() };
        let ticket = access.ticket(seat(true), at(0)).unwrap();
        assert_eq!(access.redeem(&ticket, "k3m", at(29)), Some(seat(true)));
        assert_eq!(access.redeem(&ticket, "k3m", at(29)), None, "once");
        let old = access.ticket(seat(false), at(0)).unwrap();
        assert_eq!(access.redeem(&old, "k3m", at(30)), None, "too old");
        let other = access.ticket(seat(false), at(0)).unwrap();
        assert_eq!(access.redeem(&other, "x7q", at(1)), None, "another run's");
        assert_eq!(access.redeem(&other, "k3m", at(1)), None, "and used up by that");
        let left = access.ticket(seat(false), at(0)).unwrap();
        access.end(&secret);
        assert_eq!(access.redeem(&left, "k3m", at(1)), None, "its session is over");
        assert_eq!(access.redeem(&secret, "k3m", at(1)), None);
    }

    #[test]
    fn ten_wrong_codes_close_the_door_for_codes_and_for_a_minute() {
        let mut access = Access::default();
        let inside = access.code(at(0)).unwrap();
        let inside = access.session(&inside, at(0)).unwrap();
        let good = access.code(at(0)).unwrap();
        for _ in 0..MOST_WRONG {
            assert_eq!(access.session("guess", at(1)), Err(NoSession::WrongCode));
        }
        assert_eq!(access.session(&good, at(2)), Err(NoSession::TooManyWrong));
        assert!(access.admit(&inside, at(2)).is_some(), "sessions go on");
        assert!(access.session(&good, at(61)).is_ok());
    }

    #[test]
    fn a_session_ends_when_it_is_idle_and_in_any_case_after_a_month() {
        let (day, mut access) = (24 * 3600, Access::default());
        let code = access.code(at(0)).unwrap();
        let secret = access.session(&code, at(0)).unwrap();
        for days in [6, 12, 18, 24, 29] {
            assert!(access.admit(&secret, at(days * day)).is_some());
        }
        assert!(access.admit(&secret, at(30 * day)).is_none());
        let code = access.code(at(30 * day)).unwrap();
        let idle = access.session(&code, at(30 * day)).unwrap();
        assert!(access.admit(&idle, at(37 * day)).is_none());
    }
}
