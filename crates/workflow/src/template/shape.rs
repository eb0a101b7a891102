//! What can stand below a name.

/// Enough of a type to know which names there are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// Not known before the turn.
    Any,
    Plain,
    List(&'static Self),
    Object(&'static [(&'static str, Self)]),
}

const FORLOOP: Shape = Shape::Object(&[
    ("index", Shape::Plain),
    ("index0", Shape::Plain),
    ("rindex", Shape::Plain),
    ("rindex0", Shape::Plain),
    ("first", Shape::Plain),
    ("last", Shape::Plain),
    ("length", Shape::Plain),
    ("parentloop", Shape::Any),
]);

impl Shape {
    pub(super) fn forloop() -> Self {
        FORLOOP
    }

    /// What is found one step down, or nothing.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Any, _) => Some(Self::Any),
            (Self::Object(fields), _) if fields.iter().any(|(field, _)| *field == name) => {
                fields.iter().find(|(field, _)| *field == name).map(|(_, shape)| *shape)
            }
            (Self::List(item), "first" | "last") => Some(*item),
            (_, "size") => Some(Self::Plain),
            _ => None,
        }
    }

    /// What `list[3]` and `object[variable]` may be.
    pub(super) fn indexed(self) -> Option<Self> {
        match self {
            Self::Any | Self::Object(_) => Some(Self::Any),
            Self::List(item) => Some(*item),
            Self::Plain => None,
        }
    }

    /// What a loop over it gives each time.
    pub(super) fn item(self) -> Self {
        match self {
            Self::List(item) => *item,
            Self::Any | Self::Plain | Self::Object(_) => Self::Any,
        }
    }

    pub(super) fn names(self) -> Vec<&'static str> {
        match self {
            Self::Object(fields) => fields.iter().map(|(name, _)| *name).collect(),
            Self::List(_) => vec!["first", "last", "size"],
            Self::Any | Self::Plain => Vec::new(),
        }
    }
}
