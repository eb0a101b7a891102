//! The Liquid that prompts are written in: its own tags and filters, each filter charged for what it makes.

use std::sync::Arc;

use liquid::{Parser, ParserBuilder};
use liquid_core::{ParseFilter, Result};
use liquid_lib::stdlib;

use super::meter::{Meter, Metered};
use super::tags::{AssignTag, CaptureBlock, IfChangedBlock, MarkTag};

/// A parser whose templates are charged to `meter`.
pub(super) fn parser(meter: &Arc<Meter>) -> Result<Parser> {
    let builder = ParserBuilder::new()
        .tag(MarkTag(Arc::clone(meter)))
        .tag(AssignTag(Arc::clone(meter)))
        .tag(stdlib::BreakTag)
        .tag(stdlib::ContinueTag)
        .tag(stdlib::CycleTag)
        .tag(stdlib::IncrementTag)
        .tag(stdlib::DecrementTag)
        .block(CaptureBlock(Arc::clone(meter)))
        .block(IfChangedBlock(Arc::clone(meter)))
        .block(stdlib::RawBlock)
        .block(stdlib::CommentBlock)
        .block(stdlib::IfBlock)
        .block(stdlib::UnlessBlock)
        .block(stdlib::CaseBlock)
        .block(stdlib::ForBlock)
        .block(stdlib::TableRowBlock);
    let metered = |builder: ParserBuilder, filter| builder.filter(Metered::new(filter, meter));
    filters().into_iter().fold(builder, metered).build()
}

/// Liquid's, without those whose arithmetic can panic.
fn filters() -> Vec<Box<dyn ParseFilter>> {
    vec![
        stdlib::Append.into(),
        stdlib::AtLeast.into(),
        stdlib::AtMost.into(),
        stdlib::Capitalize.into(),
        stdlib::Ceil.into(),
        stdlib::Compact.into(),
        stdlib::Concat.into(),
        stdlib::Date.into(),
        stdlib::Default.into(),
        stdlib::Downcase.into(),
        stdlib::Escape.into(),
        stdlib::EscapeOnce.into(),
        stdlib::First.into(),
        stdlib::Floor.into(),
        stdlib::Join.into(),
        stdlib::Last.into(),
        stdlib::Lstrip.into(),
        stdlib::Map.into(),
        stdlib::Minus.into(),
        stdlib::NewlineToBr.into(),
        stdlib::Plus.into(),
        stdlib::Prepend.into(),
        stdlib::Remove.into(),
        stdlib::RemoveFirst.into(),
        stdlib::Replace.into(),
        stdlib::ReplaceFirst.into(),
        stdlib::Reverse.into(),
        stdlib::Round.into(),
        stdlib::Rstrip.into(),
        stdlib::Size.into(),
        stdlib::Slice.into(),
        stdlib::Sort.into(),
        stdlib::SortNatural.into(),
        stdlib::Split.into(),
        stdlib::Strip.into(),
        stdlib::StripHtml.into(),
        stdlib::StripNewlines.into(),
        stdlib::Times.into(),
        stdlib::Truncate.into(),
        stdlib::TruncateWords.into(),
        stdlib::Uniq.into(),
        stdlib::Upcase.into(),
        stdlib::UrlDecode.into(),
        stdlib::UrlEncode.into(),
        stdlib::Where.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::names::FILTERS;
    use super::*;

    #[test]
    fn the_filters_that_are_known_are_the_filters_that_are_charged() {
        let given: Vec<String> =
            filters().iter().map(|filter| filter.reflection().name().to_owned()).collect();
        assert_eq!(given, FILTERS);
    }
}
