//! Orders about a trigger: to add, remove, pause or resume it. Each is taken once, by its id, and for the trigger that its
//! giver saw, and is in the order book by the same write that carries it out.

use std::sync::Arc;

use outlast_engine::By;
use outlast_store::{Error, TriggerChange};
use outlast_wire::api::{HookAddress, OrderTrigger, TriggerAdded, TriggerView};
use outlast_wire::codes::Code;
use serde::Serialize;

use super::callers::Caller;
use super::orders::said;
use crate::lanes::blocking;
use crate::operator::listen::ListenerStatus;
use crate::order_book::{self, Taken, Turn, Verb};
use crate::refusal::Answer;
use crate::refusal::Refusal;
use crate::runs::tell::order_id;
use crate::supervisor::Supervisor;
use crate::triggers::{self, Entry, view};
use crate::view::rfc3339;
use crate::world::host;

/// An order as its client gave it.
pub(crate) struct Given {
    pub(crate) id: String,
    /// The name of the trigger.
    pub(crate) trigger: String,
    verb: Verb,
    /// The id of the trigger that the giver saw.
    seen: Option<String>,
    by: Option<By>,
    /// A digest of what it says.
    said: String,
}

impl Given {
    pub(crate) async fn new(
        supervisor: &Arc<Supervisor>,
        caller: Caller,
        verb: Verb,
        trigger: &str,
        OrderTrigger { id, trigger_id: seen }: OrderTrigger,
    ) -> Answer<Self> {
        let id = order_id(id)?;
        let by = caller.who(supervisor).await?;
        let said = said(supervisor, &seen)?;
        Ok(Self { id, trigger: trigger.to_owned(), verb, seen, by, said })
    }

    /// Of an order that says more than which trigger its giver saw.
    pub(crate) fn saying(self, supervisor: &Supervisor, body: &impl Serialize) -> Answer<Self> {
        Ok(Self { said: said(supervisor, body)?, ..self })
    }

    pub(crate) fn taken_before(&self, supervisor: &Supervisor) -> Answer<Option<Taken>> {
        supervisor.orders.find(&self.id, self.verb, Some(&self.trigger), Some(&self.said))
    }

    /// Of an addition: what it has added, if it was taken before.
    pub(crate) async fn added_before(
        &self,
        supervisor: &Arc<Supervisor>,
    ) -> Answer<Option<TriggerAdded>> {
        let taken = self.taken_before(supervisor)?;
        let there = supervisor.triggers.table.entry(&self.trigger);
        match there.filter(|there| there.id() == self.id) {
            Some(_there) => {
                let trigger = view_of(supervisor, &self.trigger).await?;
                let (secret, warnings, replaced) = (None, Vec::new(), false);
                Ok(Some(TriggerAdded { trigger, secret, warnings, existed: true, replaced }))
            }
            None if taken.is_some() => Err(not_there(supervisor, &self.trigger, &self.id)),
            None => Ok(None),
        }
    }

    pub(crate) fn check_seen(&self, supervisor: &Supervisor) -> Answer<()> {
        check_seen(supervisor, &self.trigger, self.seen.as_deref())
    }

    /// Writes the change and the order together. `trigger_id` is that of the trigger as it is there.
    pub(crate) async fn take(
        &self,
        supervisor: &Supervisor,
        turn: &Turn<'_>,
        trigger_id: Option<String>,
        change: TriggerChange,
    ) -> Result<(), Error> {
        let page = turn.page_with(Taken {
            id: self.id.clone(),
            verb: self.verb,
            trigger: Some(self.trigger.clone()),
            trigger_id,
            by: self.by.clone(),
            at_ms: supervisor.ground.world.now().0,
            said: Some(self.said.clone()),
        });
        let (change, note) = (Box::new(change), order_book::NOTE.to_owned());
        let noted = TriggerChange::Noted { change, note, value: page.json() };
        triggers::change(&supervisor.triggers, noted).await?;
        turn.turn_to(page);
        Ok(())
    }
}

/// Refuses an order for another trigger than the one that has the name now.
pub(crate) fn check_seen(supervisor: &Supervisor, name: &str, seen: Option<&str>) -> Answer<()> {
    let Some(seen) = seen else { return Ok(()) };
    let there = supervisor.triggers.table.entry(name);
    match there.is_some_and(|there| there.id() == seen) {
        true => Ok(()),
        false => Err(not_there(supervisor, name, seen)),
    }
}

/// Why the trigger of this id does not have the name any more.
fn not_there(supervisor: &Supervisor, name: &str, id: &str) -> crate::refusal::Refusal {
    let removed = supervisor.orders.last_of(Verb::RemoveTrigger, id);
    let removed = removed.map(|taken| format!("was removed {}", taken.when_and_who()));
    let other = supervisor.triggers.table.entry(name);
    let other =
        other.map(|there| format!("another one has its name, {}", since(supervisor, &there)));
    let why = match (removed, other) {
        (None, None) => return Refusal::no_trigger(name),
        (Some(removed), None) => removed,
        (None, Some(other)) => format!("is not there any more: {other}"),
        (Some(removed), Some(other)) => format!("{removed}; {other}"),
    };
    let message = format!("trigger {name:?} with the id {id} {why}");
    Refusal::new(Code::StaleOrder, message).hint("outlast trigger ls")
}

/// Since when a trigger is there and who has added it, for people.
pub(crate) fn since(supervisor: &Supervisor, entry: &Entry) -> String {
    match supervisor.orders.last_of(Verb::AddTrigger, &entry.id()) {
        Some(taken) => format!("added {}", taken.when_and_who()),
        None => format!("added {}", rfc3339(entry.created_at)),
    }
}

pub(crate) async fn view_of(supervisor: &Arc<Supervisor>, name: &str) -> Answer<TriggerView> {
    let (reader, of) = (supervisor.clone(), name.to_owned());
    let found = blocking(move || Ok(view::one(&reader.triggers, &of)?)).await?;
    let found = found.ok_or_else(|| Refusal::no_trigger(name))?;
    Ok(with_hook(supervisor, found))
}

/// Says of a webhook where it can be reached.
pub(crate) fn with_hook(supervisor: &Supervisor, view: TriggerView) -> TriggerView {
    if view.kind != "webhook" {
        return view;
    }
    let wanted = supervisor.config().ok().and_then(|config| config.listen.address.clone());
    let (address, problem) = match (supervisor.operator.listening.status(), wanted) {
        // It is reached by any of the machine's addresses, which are not known here.
        (ListenerStatus::On { address, .. }, _) if address.ip().is_unspecified() => {
            (Some(format!("{}:{}", host::name(), address.port())), None)
        }
        (ListenerStatus::On { address, .. }, _) => (Some(address.to_string()), None),
        (ListenerStatus::Refused { why, .. }, _) => (None, Some(why)),
        (ListenerStatus::Failing { address, error, .. }, _) => {
            (None, Some(format!("cannot listen on {address}: {error}")))
        }
        // A daemon that has just started, or a config that was just changed.
        (ListenerStatus::Off, Some(address)) => (Some(address), None),
        (ListenerStatus::Off, None) => (None, Some("nothing listens on TCP".to_owned())),
    };
    let hook = HookAddress {
        url: address.map(|address| format!("http://{address}/hooks/{}", view.name)),
        socket: supervisor.ground.socket().display().to_string(),
        problem,
        config: supervisor.ground.settings.path().display().to_string(),
    };
    TriggerView { hook: Some(hook), ..view }
}
