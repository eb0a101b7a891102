//! One value of a response and where it stands, so that whatever is wrong with it can be named.
//!
//! Only for a text that `whole` has passed: a key that is there twice would go unnoticed here.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::BadResponse;

pub(super) struct Node<'a> {
    path: String,
    raw: &'a RawValue,
}

impl<'a> Node<'a> {
    pub(super) fn bad(&self, problem: &'static str) -> BadResponse {
        BadResponse::Field { field: self.path.clone(), problem }
    }

    /// As the agent wrote it.
    pub(super) fn written(&self) -> &'a str {
        self.raw.get()
    }

    pub(super) fn is_number(&self) -> bool {
        self.written().starts_with(|first: char| first == '-' || first.is_ascii_digit())
    }

    pub(super) fn text(&self) -> Result<String, BadResponse> {
        serde_json::from_str(self.written()).map_err(|_| self.bad("must be a string"))
    }

    /// Only true says anything.
    pub(super) fn yes(&self) -> Result<(), BadResponse> {
        if self.written() == "true" { Ok(()) } else { Err(self.bad("must be true")) }
    }

    pub(super) fn list(&self) -> Result<Vec<Self>, BadResponse> {
        let items: Vec<&'a RawValue> =
            serde_json::from_str(self.written()).map_err(|_| self.bad("must be a list"))?;
        let items = items.into_iter().enumerate();
        Ok(items
            .map(|(index, raw)| Self { path: format!("{}[{index}]", self.path), raw })
            .collect())
    }

    pub(super) fn fields(&self) -> Result<Fields<'a>, BadResponse> {
        let members =
            serde_json::from_str(self.written()).map_err(|_| self.bad("must be an object"))?;
        Ok(Fields { path: format!("{}.", self.path), members })
    }
}

/// The members of an object.
pub(super) struct Fields<'a> {
    /// What stands before the name of each.
    path: String,
    members: BTreeMap<String, &'a RawValue>,
}

impl<'a> Fields<'a> {
    pub(super) fn of_whole(text: &'a str) -> Result<Self, BadResponse> {
        let members = serde_json::from_str(text).map_err(|_| BadResponse::NotAnObject)?;
        Ok(Self { path: String::new(), members })
    }

    /// The member of that name, unless it is null.
    pub(super) fn get(&self, name: &str) -> Option<Node<'a>> {
        let raw = self.members.get(name).filter(|raw| raw.get() != "null")?;
        Some(Node { path: self.path_of(name), raw })
    }

    pub(super) fn require(&self, name: &str) -> Result<Node<'a>, BadResponse> {
        let missing = || BadResponse::Field { field: self.path_of(name), problem: "is missing" };
        self.get(name).ok_or_else(missing)
    }

    /// The member of that name as it was written, null too.
    pub(super) fn written(&self, name: &str) -> Option<&'a str> {
        self.members.get(name).map(|raw| raw.get())
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }
}
