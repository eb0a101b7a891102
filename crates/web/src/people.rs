//! People whom a proxy names, and what each may do.
//!
//! A proxy's word counts only together with a secret that this process and the proxy share: any other program on this
//! machine could write the same header. A name gives no session by itself; it is exchanged for one, and has to come with
//! each request of that session.

use axum::http::header::{HeaderMap, HeaderName};
use axum::http::{Method, StatusCode};
use outlast_client::problem::Problem;

use crate::access::{Hash, hash, is_same};
use crate::names::only;
use crate::refusal::Refusal;

/// The journal has room for this much of a name, in bytes.
const LONGEST_NAME: usize = 56;
const SHORTEST_SECRET: usize = 16;

/// What a person may do; a later one may do what an earlier one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Looks.
    Viewer,
    /// Answers, sends, pauses, resumes, stops; watches terminals.
    Operator,
    /// Starts runs, raises limits, types into terminals.
    Admin,
}

impl Role {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// A proxy whose word on who a person is counts.
#[derive(Debug, Clone)]
pub struct Proxy {
    user_header: HeaderName,
    secret_header: HeaderName,
    secret: Hash,
    /// Names and their roles; `*` is every name that has none of its own.
    roles: Vec<(String, Role)>,
}

impl Proxy {
    /// The two headers, the secret that they share, and who may do what.
    pub fn new(
        user_header: &str,
        secret_header: &str,
        secret: &str,
        roles: Vec<(String, Role)>,
    ) -> Result<Self, Problem> {
        let bad = |what: &str, why: &str| {
            Problem::refusal("bad_config", format!("{what} {why}")).hint("outlast config check")
        };
        let named = |what: &str, name: &str| {
            HeaderName::try_from(name).map_err(|_| bad(what, "is no name of a header"))
        };
        let user_header = named("web.proxy.user_header", user_header)?;
        let secret_header = named("web.proxy.secret_header", secret_header)?;
        if user_header == secret_header {
            return Err(bad("web.proxy.secret_header", "is the same as user_header"));
        }
        let is_fit =
            secret.len() >= SHORTEST_SECRET && secret.bytes().all(|it| it.is_ascii_graphic());
        if !is_fit {
            let why = "has to hold one line of 16 or more letters, digits and signs";
            return Err(bad("web.proxy.secret_file", why));
        }
        Ok(Self { user_header, secret_header, secret: hash(secret), roles })
    }

    /// Two of either header are none: a proxy that adds its own to one that came from outside is set up wrongly.
    pub(crate) fn refuse_two(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let is_twice = |name| headers.get_all(name).iter().nth(1).is_some();
        if !is_twice(&self.user_header) && !is_twice(&self.secret_header) {
            return Ok(());
        }
        let message = "the proxy's header came twice";
        Err(Refusal::new(StatusCode::BAD_REQUEST, "two_names", message))
    }

    /// The person whom this request names, if the proxy has sent it.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Result<Option<Caller>, Refusal> {
        self.refuse_two(headers)?;
        let is_proxy = only(headers, &self.secret_header).map(hash);
        if !is_proxy.is_some_and(|found| is_same(&found, &self.secret)) {
            return Ok(None);
        }
        let Some(name) = only(headers, &self.user_header).filter(|name| is_name(name)) else {
            return Ok(None);
        };
        let Some(role) = self.role(name) else {
            let message = format!("{name} has no role here");
            let refusal = Refusal::new(StatusCode::FORBIDDEN, "not_allowed", &message);
            return Err(refusal.hint("web.roles in config.toml gives roles"));
        };
        Ok(Some(Caller { name: Some(name.to_owned()), role }))
    }

    fn role(&self, name: &str) -> Option<Role> {
        let of = |wanted: &str| {
            self.roles.iter().filter(|(it, _)| it == wanted).map(|(_, role)| *role).max()
        };
        of(name).or_else(|| of("*"))
    }
}

fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && name != "*"
        && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Who a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Of a person whom a proxy names.
    name: Option<String>,
    role: Role,
}

impl Caller {
    /// The user of this machine.
    pub(crate) fn owner() -> Self {
        Self { name: None, role: Role::Admin }
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// How the journal names the way of an order.
    pub(crate) fn via(&self) -> String {
        self.name.as_ref().map_or_else(|| "web".to_owned(), |name| format!("web:{name}"))
    }

    pub(crate) fn need(&self, role: Role) -> Result<(), Refusal> {
        if self.role >= role {
            return Ok(());
        }
        let message = format!("{} may not do this: it needs the role {}", self.name(), role.word());
        Err(Refusal::new(StatusCode::FORBIDDEN, "not_allowed", &message))
    }
}

/// What an operator may do to a run, a trigger, a sink or everything.
const OPERATES: [(&str, &[&str]); 4] = [
    ("runs", &["answer", "messages", "pause", "resume", "stop"]),
    ("triggers", &["run", "pause", "resume"]),
    ("sinks", &["test", "enable"]),
    ("daemon", &["pause", "resume"]),
];

/// The role that a route below `/api` needs. What is not named here needs the highest.
pub(crate) fn needed(method: &Method, path: &str) -> Role {
    if method == Method::GET || path == "/api/session/end" {
        return Role::Viewer;
    }
    let mut parts = path.trim_start_matches("/api/").split('/');
    let (kind, verb) = (parts.next().unwrap_or_default(), parts.next_back().unwrap_or_default());
    let operates = OPERATES.iter().any(|(it, verbs)| *it == kind && verbs.contains(&verb));
    // Watching a terminal; typing is asked for with the ticket.
    if operates || path == "/api/ticket" { Role::Operator } else { Role::Admin }
}
