//! What a tool is called with. A value of the wrong type is refused, and so is a name that the tool does not take.

use outlast_client::problem::Problem;
use serde_json::{Map, Value};

pub(crate) struct Arguments(Map<String, Value>);

/// What is longer is no argument.
const LONGEST: usize = 1 << 20;

impl Arguments {
    pub(crate) fn new(given: Value) -> Result<Self, Problem> {
        match given {
            Value::Null => Ok(Self(Map::new())),
            Value::Object(map) => Ok(Self(map)),
            _ => Err(wrong("arguments are one JSON object")),
        }
    }

    pub(crate) fn refuse_unknown(&self, known: &Value) -> Result<(), Problem> {
        match self.0.keys().find(|name| known.get(name.as_str()).is_none()) {
            Some(name) => Err(wrong(&format!("there is no argument {name:?}"))),
            None => Ok(()),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<String, Problem> {
        self.maybe_text(name)?.ok_or_else(|| wrong(&format!("{name} is missing")))
    }

    pub(crate) fn maybe_text(&self, name: &str) -> Result<Option<String>, Problem> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() > LONGEST => {
                Err(wrong(&format!("{name} is too long")))
            }
            Some(Value::String(text)) if text.trim().is_empty() => {
                Err(wrong(&format!("{name} is empty")))
            }
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong(&format!("{name} has to be a text"))),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(wrong(&format!("{name} has to be a whole number, 0 or more"))),
            },
        }
    }

    pub(crate) fn amount(&self, name: &str) -> Result<Option<f64>, Problem> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64().filter(|it| it.is_finite() && *it >= 0.0) {
                Some(amount) => Ok(Some(amount)),
                None => Err(wrong(&format!("{name} has to be a number, 0 or more"))),
            },
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(wrong(&format!("{name} has to be true or false"))),
        }
    }

    /// A line for the shell, or a program with its arguments.
    pub(crate) fn command(&self, name: &str) -> Result<Option<Vec<String>>, Problem> {
        if let Some(Value::Array(words)) = self.0.get(name) {
            let words: Option<Vec<String>> =
                words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            let words = words.filter(|words| words.first().is_some_and(|it| !it.is_empty()));
            let fault = || wrong(&format!("{name} has to be a text or a list of texts"));
            return words.map(Some).ok_or_else(fault);
        }
        let line = self.maybe_text(name)?;
        Ok(line.map(|line| ["sh", "-c", &line].map(str::to_owned).to_vec()))
    }

    /// A list of texts.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Problem> {
        let fault = || wrong(&format!("{name} has to be a list of texts"));
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(texts)) => texts
                .iter()
                .map(|text| text.as_str().map(str::to_owned).ok_or_else(fault))
                .collect(),
            Some(_) => Err(fault()),
        }
    }

    /// Names and values, all of them texts.
    pub(crate) fn pairs(&self, name: &str) -> Result<Vec<(String, String)>, Problem> {
        let fault = || wrong(&format!("{name} has to be an object of texts"));
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Object(map)) => map
                .iter()
                .map(|(name, value)| {
                    let value = value.as_str().ok_or_else(fault)?;
                    Ok((name.clone(), value.to_owned()))
                })
                .collect(),
            Some(_) => Err(fault()),
        }
    }
}

pub(crate) fn wrong(why: &str) -> Problem {
    Problem::refusal("bad_arguments", why)
}
