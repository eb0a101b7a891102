//! What a run is called: how it can be named on a command line, and messages with names in the place of ids.
//!
//! Rules know a run by its id, its user knows it by its name. In a message an id stays where it is part of a path, of a
//! key or of another word, and where the name would mean another run or would need quotes in a shell.

use outlast_engine::{Run, RunId};
use outlast_store::{Error, Journal, Resolved};

use crate::refusal::Answer;

/// How a run can be named on a command line: by its name if that means this run, else by its id. A name that a shell would
/// take apart is for screens, which quote it. Blocks.
pub(crate) fn called(store: &dyn Journal, run: &Run) -> Answer<String> {
    let Some(name) = &run.spec.name else { return Ok(run.id.0.clone()) };
    let is_its = matches!(store.resolve(name)?, Resolved::One(id) if id == run.id);
    Ok(if is_its { name.clone() } else { run.id.0.clone() })
}

/// The text with names in it. Blocks.
pub(crate) fn in_text(store: &dyn Journal, text: &str) -> Result<String, Error> {
    let mut named = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(start) = rest.find(is_of_word) {
        let (gap, word_on) = rest.split_at(start);
        let end = word_on.find(|it: char| !is_of_word(it)).unwrap_or(word_on.len());
        let (word, after) = word_on.split_at(end);
        before = gap.chars().next_back().or(before);
        named.push_str(gap);
        let name = match is_apart(before, after) {
            true => name_of(store, word)?,
            false => None,
        };
        named.push_str(name.as_deref().unwrap_or(word));
        before = word.chars().next_back();
        rest = after;
    }
    named.push_str(rest);
    Ok(named)
}

fn is_of_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

/// True if the word between these is no part of a path, of a key or of a longer name.
fn is_apart(before: Option<char>, after: &str) -> bool {
    let joins = |it: char| "/-.=@#".contains(it);
    let mut after = after.chars();
    // A full stop ends a sentence, or begins the suffix of a file.
    let is_joined = match after.next() {
        Some('.') => after.next().is_some_and(is_of_word),
        Some(next) => joins(next),
        None => false,
    };
    !before.is_some_and(joins) && !is_joined
}

/// The name of the run with this id, if it has one that means it.
fn name_of(store: &dyn Journal, word: &str) -> Result<Option<String>, Error> {
    let id = RunId(word.to_owned());
    if !id.is_well_formed() {
        return Ok(None);
    }
    // A run that cannot be read is told by its id.
    let Ok(Some(row)) = store.row(&id) else { return Ok(None) };
    let Some(name) = row.name.filter(|name| is_plain(name)) else { return Ok(None) };
    let is_its = matches!(store.resolve(&name)?, Resolved::One(found) if found == id);
    Ok(is_its.then_some(name))
}

/// True if a shell takes the name as one word.
pub(super) fn is_plain(name: &str) -> bool {
    name.chars().all(|it| it.is_alphanumeric() || "-_./:@".contains(it))
}
