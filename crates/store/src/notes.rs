//! What the daemon itself is told and must not forget, by name. Few and small.

use crate::Error;

pub trait Notes {
    /// What is noted under a name, if something is.
    fn note(&self, name: &str) -> Result<Option<String>, Error>;

    /// Notes it, or forgets it, and returns once that is durable.
    fn set_note(&self, name: &str, value: Option<&str>, epoch: u64) -> Result<(), Error> {
        self.set_notes(&[(name, value)], epoch)
    }

    /// Notes or forgets all of them, or none, and returns once that is durable.
    fn set_notes(&self, notes: &[(&str, Option<&str>)], epoch: u64) -> Result<(), Error>;
}
