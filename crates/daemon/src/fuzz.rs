//! The daemon's parsers of foreign bytes, for fuzz targets. Takes bytes and promises only to return; not part of the
//! daemon's API.

use outlast_engine::Time;

use crate::triggers::poll;
use crate::triggers::webhook::{self, Condition};

/// A delivery to a webhook whose secret is `secret of a test`, under a filter that comes as a header of its own.
pub fn webhook(headers: &[(String, String)], body: &[u8]) {
    let get = |name: &str| {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let now = Time(1_731_801_600_000);
    for secret in ["secret of a test", "whsec_c2VjcmV0IG9mIGEgdGVzdA=="] {
        let proof = webhook::proof(secret, &get, body, now);
        assert!(proof.is_none() || headers.iter().any(|(name, _)| !name.is_empty()));
    }
    let id = webhook::delivery_id(get("id-header").as_deref(), &get, body);
    assert!(!id.is_empty() && !id.contains(' '), "an id that could be a mark: {id:?}");
    if let (Some(filter), Ok(item)) = (get("filter"), serde_json::from_slice(body))
        && let Ok(condition) = Condition::parse(&filter)
    {
        let _either_way: bool = condition.holds(&item);
    }
}

/// What a poll printed.
pub fn poll(printed: &[u8]) {
    drop(poll::items(printed, Time(1)));
}
