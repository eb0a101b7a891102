//! A sorted map of which many copies share what they have in common.
//!
//! A run is copied with every step. A copy that changes one entry copies the piece with that entry and the list of
//! pieces, so a step costs about the same however many entries there are.

use std::fmt;
use std::sync::Arc;

/// A piece with more entries is cut in two.
const MOST_IN_A_PIECE: usize = 32;

/// Entries in the order of their keys.
type Piece<T> = Vec<(Arc<str>, Arc<T>)>;

#[derive(Clone)]
pub(crate) struct SharedMap<T> {
    /// In the order of their keys, and none of them empty.
    pieces: Arc<Vec<Arc<Piece<T>>>>,
}

/// Where a key is, or would be.
struct Place {
    piece: usize,
    at: Result<usize, usize>,
}

impl<T> Default for SharedMap<T> {
    fn default() -> Self {
        Self { pieces: Arc::default() }
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// By what is in it: how it is cut depends on the order in which the entries came.
impl<T: PartialEq> PartialEq for SharedMap<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pieces, &other.pieces) || self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for SharedMap<T> {}

impl<T> SharedMap<T> {
    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&T> {
        let place = self.place(key)?;
        Some(&self.pieces[place.piece][place.at.ok()?].1)
    }

    /// In the order of the keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let entries = self.pieces.iter().flat_map(|piece| piece.iter());
        entries.map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    pub(crate) fn insert(&mut self, key: &str, value: T) {
        let value = Arc::new(value);
        let place = self.place(key);
        let pieces = Arc::make_mut(&mut self.pieces);
        let Some(Place { piece: at_piece, at }) = place else {
            pieces.push(Arc::new(vec![(key.into(), value)]));
            return;
        };
        let piece = Arc::make_mut(&mut pieces[at_piece]);
        match at {
            Ok(at) => piece[at].1 = value,
            Err(at) => piece.insert(at, (key.into(), value)),
        }
        if piece.len() > MOST_IN_A_PIECE {
            let rest = piece.split_off(piece.len() / 2);
            pieces.insert(at_piece + 1, Arc::new(rest));
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        let Some(Place { piece: at_piece, at: Ok(at) }) = self.place(key) else { return };
        let pieces = Arc::make_mut(&mut self.pieces);
        let piece = Arc::make_mut(&mut pieces[at_piece]);
        piece.remove(at);
        if piece.is_empty() {
            pieces.remove(at_piece);
        }
    }

    /// Changes nothing, and copies nothing, if all of them are kept.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str, &T) -> bool) {
        if self.iter().all(|(key, value)| is_kept(key, value)) {
            return;
        }
        let pieces = Arc::make_mut(&mut self.pieces);
        for piece in pieces.iter_mut() {
            Arc::make_mut(piece).retain(|(key, value)| is_kept(key, value));
        }
        pieces.retain(|piece| !piece.is_empty());
    }

    /// `None` while there is no entry at all.
    fn place(&self, key: &str) -> Option<Place> {
        let after = self.pieces.partition_point(|piece| piece[0].0.as_ref() <= key);
        let piece = after.saturating_sub(1);
        let at = self.pieces.get(piece)?.binary_search_by(|(known, _)| known.as_ref().cmp(key));
        Some(Place { piece, at })
    }
}

impl<T: Clone> SharedMap<T> {
    pub(crate) fn change(&mut self, key: &str, change: impl FnOnce(&mut T)) {
        let Some(Place { piece, at: Ok(at) }) = self.place(key) else { return };
        let piece = Arc::make_mut(&mut Arc::make_mut(&mut self.pieces)[piece]);
        change(Arc::make_mut(&mut piece[at].1));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u16, u8),
        Change(u16, u8),
        Remove(u16),
        KeepOdd,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            60 => (0..400u16, any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
            20 => (0..400u16, any::<u8>()).prop_map(|(key, value)| Step::Change(key, value)),
            20 => (0..400u16).prop_map(Step::Remove),
            1 => Just(Step::KeepOdd),
        ]
    }

    proptest! {
        #[test]
        fn it_has_what_a_plain_map_has_and_no_copy_sees_a_later_step(
            steps in prop::collection::vec(step(), 0..600),
        ) {
            let mut map = SharedMap::default();
            let mut model = BTreeMap::new();
            let mut copies = Vec::new();
            for step in steps {
                copies.push((map.clone(), model.clone()));
                let text = |key: u16| key.to_string();
                match step {
                    Step::Insert(key, value) => {
                        map.insert(&text(key), value);
                        model.insert(text(key), value);
                    }
                    Step::Change(key, value) => {
                        map.change(&text(key), |it| *it = value);
                        model.entry(text(key)).and_modify(|it| *it = value);
                    }
                    Step::Remove(key) => {
                        map.remove(&text(key));
                        model.remove(&text(key));
                    }
                    Step::KeepOdd => {
                        map.retain(|_, value| value % 2 == 1);
                        model.retain(|_, value| *value % 2 == 1);
                    }
                }
            }
            copies.push((map, model));
            for (map, model) in copies {
                prop_assert_eq!(map.len(), model.len());
                let has: Vec<_> = map.iter().map(|(key, value)| (key.to_owned(), *value)).collect();
                let wants: Vec<_> = model.clone().into_iter().collect();
                prop_assert_eq!(has, wants);
                prop_assert!(model.iter().all(|(key, value)| map.get(key) == Some(value)));
            }
        }
    }

    #[test]
    fn two_maps_with_the_same_entries_are_equal_however_they_are_cut() {
        let (mut up, mut down) = (SharedMap::default(), SharedMap::default());
        for key in 0..200 {
            up.insert(&format!("{key:03}"), key);
            down.insert(&format!("{:03}", 199 - key), 199 - key);
        }
        assert_eq!(up, down);
        down.change("007", |it| *it = 0);
        assert_ne!(up, down);
    }

    #[test]
    fn a_step_copied_every_entry_that_there_was() {
        let mut map = SharedMap::default();
        (0..4096).for_each(|key| map.insert(&format!("{key:04}"), key));
        let mut next = map.clone();
        next.insert("2048a", 0);
        let is_shared =
            |piece: &&Arc<Piece<i32>>| map.pieces.iter().any(|it| Arc::ptr_eq(it, piece));
        let copied: usize =
            next.pieces.iter().filter(|piece| !is_shared(piece)).map(|piece| piece.len()).sum();
        assert!(copied <= MOST_IN_A_PIECE + 1, "{copied} entries");
        assert_eq!((next.len(), map.len()), (4097, 4096));
    }
}
