//! The two eras of the protocol: with a handshake up to 2025-11-25, and without any state since 2026-07-28. Pure.
//!
//! A request of the new era names its version itself, in `_meta`. So one server speaks both at once and remembers nothing.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::rpc::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, UNKNOWN_METHOD,
    UNSUPPORTED_VERSION,
};
use crate::table;

/// The versions that begin with `initialize`, the newest first.
const WITH_HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The versions that a request names itself.
const WITHOUT: [&str; 1] = ["2026-07-28"];

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Handshake,
    Stateless,
}

/// Why a request cannot be answered in the version that it names: the `error` of the answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Unsupported(pub(crate) Value);

/// What the headers of a request over HTTP say of its body. The new era has the method and the tool there too.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Named<'h> {
    pub(crate) version: Option<&'h str>,
    pub(crate) method: Option<&'h str>,
    pub(crate) name: Option<&'h str>,
}

impl Named<'_> {
    /// A version that is named has to be one of ours. Clients before 2025-06-18 name none.
    pub(crate) fn known(&self) -> Result<(), Unsupported> {
        let all = || WITHOUT.iter().chain(&WITH_HANDSHAKE);
        match self.version {
            Some(version) if !all().any(|known| *known == version) => {
                let all: Vec<&str> = all().copied().collect();
                Err(unsupported(&json!(version), &all))
            }
            _ => Ok(()),
        }
    }
}

fn unsupported(asked: &Value, known: &[&str]) -> Unsupported {
    Unsupported(json!({
        "code": UNSUPPORTED_VERSION,
        "message": "this version of the protocol is not supported",
        "data": {"supported": known, "requested": asked},
    }))
}

impl Era {
    /// The era of a request over HTTP, whose headers have to say the same as its body.
    pub(crate) fn of_http(
        named: &Named<'_>,
        method: &str,
        params: &Value,
    ) -> Result<Self, Unsupported> {
        named.known()?;
        let mismatch = |what: &str| {
            let why = format!("the header {what} does not say what the body says");
            Unsupported(json!({"code": HEADER_MISMATCH, "message": why}))
        };
        let asked = params["_meta"].get(VERSION_KEY);
        let is_new = asked.is_some() || named.version.is_some_and(|it| WITHOUT.contains(&it));
        if !is_new {
            return Ok(Self::Handshake);
        }
        if asked.and_then(Value::as_str) != named.version {
            return Err(mismatch("MCP-Protocol-Version"));
        }
        if named.method != Some(method) {
            return Err(mismatch("Mcp-Method"));
        }
        let name = params["name"].as_str().filter(|_| method == "tools/call");
        if name.is_some() && named.name != name {
            return Err(mismatch("Mcp-Name"));
        }
        Self::of(params)
    }

    /// The status of an answer over HTTP. The old era answers a request with 200 whatever became of it.
    pub(crate) fn status(self, answer: &Value) -> StatusCode {
        match (self, answer["error"]["code"].as_i64()) {
            (Self::Stateless, Some(UNKNOWN_METHOD)) => StatusCode::NOT_FOUND,
            (Self::Stateless, Some(PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS)) => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::OK,
        }
    }

    /// The era of a request. A request that names a version has to name one of ours, and what its client can do.
    pub(crate) fn of(params: &Value) -> Result<Self, Unsupported> {
        let meta = &params["_meta"];
        let Some(asked) = meta.get(VERSION_KEY) else { return Ok(Self::Handshake) };
        if !WITHOUT.iter().any(|known| asked == known) {
            return Err(unsupported(asked, &WITHOUT));
        }
        if !meta[CAPABILITIES_KEY].is_object() {
            let why = format!("_meta has to have {CAPABILITIES_KEY:?}");
            return Err(Unsupported(json!({"code": INVALID_PARAMS, "message": why})));
        }
        Ok(Self::Stateless)
    }

    /// A result as this era has it.
    pub(crate) fn result(self, mut result: Value) -> Value {
        if self == Self::Stateless {
            result["resultType"] = json!("complete");
            result["_meta"] = json!({SERVER_KEY: server()});
        }
        result
    }

    /// A result that the new era lets a client keep. The client is told to ask again: the loop file decides what is listed.
    pub(crate) fn cacheable(self, mut result: Value) -> Value {
        if self == Self::Stateless {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        self.result(result)
    }
}

/// The result of `initialize`: the version that the client asked for, or else our newest with a handshake.
pub(crate) fn initialized(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = WITH_HANDSHAKE.iter().find(|known| **known == asked);
    json!({
        "protocolVersion": version.unwrap_or(&WITH_HANDSHAKE[0]),
        "capabilities": {"tools": {"listChanged": false}},
        "serverInfo": server(),
        "instructions": table::INSTRUCTIONS,
    })
}

/// The result of `server/discover`.
pub(crate) fn discovered() -> Value {
    Era::Stateless.cacheable(json!({
        "supportedVersions": WITHOUT,
        "capabilities": {"tools": {}},
        "instructions": table::INSTRUCTIONS,
    }))
}

fn server() -> Value {
    json!({"name": "outlast", "title": "Outlast", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(version: &str) -> Value {
        json!({"_meta": {VERSION_KEY: version, CAPABILITIES_KEY: {}}})
    }

    #[test]
    fn a_request_names_its_era() {
        assert_eq!(Era::of(&Value::Null), Ok(Era::Handshake));
        assert_eq!(Era::of(&json!({"_meta": {"progressToken": 1}})), Ok(Era::Handshake));
        assert_eq!(Era::of(&asks("2026-07-28")), Ok(Era::Stateless));
    }

    #[test]
    fn an_unknown_version_is_told_which_are_known() {
        let Err(Unsupported(error)) = Era::of(&asks("2027-01-01")) else { panic!("supported") };
        assert_eq!(error["code"], -32022);
        assert_eq!(error["data"], json!({"supported": ["2026-07-28"], "requested": "2027-01-01"}));
    }

    #[test]
    fn a_client_that_does_not_say_what_it_can_do_is_refused() {
        let Err(Unsupported(error)) = Era::of(&json!({"_meta": {VERSION_KEY: "2026-07-28"}}))
        else {
            panic!("supported")
        };
        assert_eq!(error["code"], -32602);
    }

    #[test]
    fn the_headers_of_a_request_say_what_its_body_says() {
        let code = |named: Named<'_>, method: &str, params: &Value| match Era::of_http(
            &named, method, params,
        ) {
            Ok(era) => json!(format!("{era:?}")),
            Err(Unsupported(error)) => error["code"].clone(),
        };
        let old = |version| Named { version, ..Named::default() };
        for version in [None, Some("2025-11-25"), Some("2025-03-26")] {
            assert_eq!(code(old(version), "tools/list", &Value::Null), "Handshake");
        }
        for version in ["", "banana", "2027-01-01"] {
            assert_eq!(code(old(Some(version)), "tools/list", &Value::Null), -32022, "{version}");
        }
        let (version, method) = (Some("2026-07-28"), Some("tools/call"));
        let new = Named { version, method, name: Some("note") };
        let mut body = asks("2026-07-28");
        body["name"] = json!("note");
        assert_eq!(code(new, "tools/call", &body), "Stateless");
        assert_eq!(code(new, "tools/list", &body), -32020);
        assert_eq!(code(Named { name: Some("call"), ..new }, "tools/call", &body), -32020);
        assert_eq!(code(Named { name: None, ..new }, "tools/call", &body), -32020);
        assert_eq!(code(Named { version: Some("2025-11-25"), ..new }, "tools/call", &body), -32020);
        assert_eq!(code(Named { version: None, ..new }, "tools/call", &body), -32020);
        assert_eq!(code(new, "tools/call", &Value::Null), -32020, "only the header names it");
    }

    #[test]
    fn only_the_new_era_has_its_fields() {
        let list = json!({"tools": []});
        assert_eq!(Era::Handshake.cacheable(list.clone()), list);
        let new = Era::Stateless.cacheable(list);
        assert_eq!((&new["resultType"], &new["ttlMs"]), (&json!("complete"), &json!(0)));
        assert_eq!(new["cacheScope"], "private");
        assert_eq!(new["_meta"][SERVER_KEY]["name"], "outlast");
    }
}
