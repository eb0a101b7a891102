//! Texts within a budget of bytes. What is left out is marked where it was, with how much it is and where
//! the whole is; nothing that was let in makes a turn fail for its length.

/// Which part of a text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Beginning,
    /// Of output the end says most.
    End,
}

/// The length that each of these texts may keep so that all of them fit: short ones stay whole, long ones
/// share what is left.
pub(super) fn level(lengths: impl Iterator<Item = usize>, budget: usize) -> usize {
    let mut lengths: Vec<usize> = lengths.collect();
    lengths.sort_unstable();
    let mut left = budget;
    for (n, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - n);
        if *length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

/// The part of `text` that is kept, cut between letters, and how many bytes are not.
pub(super) fn part(text: &str, most: usize, keep: Keep) -> (&str, usize) {
    if text.len() <= most {
        return (text, 0);
    }
    let kept = match keep {
        Keep::Beginning => &text[..text.floor_char_boundary(most)],
        Keep::End => &text[text.ceil_char_boundary(text.len() - most)..],
    };
    (kept, text.len() - kept.len())
}

/// The same as one text, with a mark where something was left out. `whole` says where all of it is.
pub(super) fn marked(text: &str, most: usize, keep: Keep, whole: &str) -> String {
    let (kept, left_out) = part(text, most, keep);
    match (left_out, keep) {
        (0, _) => kept.to_owned(),
        (_, Keep::Beginning) => format!("{kept}\n{}", mark(left_out, whole)),
        (_, Keep::End) => format!("{}\n{kept}", mark(left_out, whole)),
    }
}

fn mark(left_out: usize, whole: &str) -> String {
    format!("[outlast: {left_out} bytes left out here; {whole}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_stay_whole_and_long_ones_share_the_rest() {
        assert_eq!(level([10, 20, 30].into_iter(), 60), usize::MAX);
        assert_eq!(level([10, 100, 100].into_iter(), 60), 25);
        assert_eq!(level([0, 0, 100].into_iter(), 60), 60);
        assert_eq!(level(std::iter::empty(), 60), usize::MAX);
        let texts = [1, 700, 3, 90, 90, 1200];
        let level = level(texts.into_iter(), 500);
        assert!(texts.into_iter().map(|length: usize| length.min(level)).sum::<usize>() <= 500);
    }

    #[test]
    fn what_is_left_out_is_marked_where_it_was_and_counted() {
        let marked = |most, keep| marked("äbcdeä", most, keep, "all of it is here");
        assert_eq!(marked(8, Keep::Beginning), "äbcdeä");
        assert_eq!(
            marked(3, Keep::Beginning),
            "äb\n[outlast: 5 bytes left out here; all of it is here]"
        );
        assert_eq!(
            marked(1, Keep::Beginning),
            "\n[outlast: 8 bytes left out here; all of it is here]"
        );
        assert_eq!(marked(3, Keep::End), "[outlast: 5 bytes left out here; all of it is here]\neä");
    }
}
