//! Events as the page gets them.

use outlast_client::journal::Event;
use serde_json::{Value, json};

use crate::state::Teller;
use crate::truth;

/// An event, what it says to a person, and what of it is not known.
pub(crate) fn told(event: &Event, teller: &mut Teller) -> Value {
    let fields: Value = serde_json::from_str(&event.json).unwrap_or_default();
    json!({ "event": fields, "says": teller(event), "truth": truth::of_event(event) })
}
