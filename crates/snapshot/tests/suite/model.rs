//! Any series of changes: each snapshot is exactly what was there, and going back to any of them gives it back.

use proptest::prelude::*;

use crate::scene::{Files, Scene};

#[derive(Debug, Clone)]
enum Op {
    Write(u8, u8),
    Remove(u8),
    Link(u8, u8),
    Mode(u8, bool),
    Rename(u8, u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..8u8, any::<u8>()).prop_map(|(name, text)| Op::Write(name, text)),
        (0..8u8).prop_map(Op::Remove),
        (0..8u8, 0..8u8).prop_map(|(name, to)| Op::Link(name, to)),
        (0..8u8, any::<bool>()).prop_map(|(name, is)| Op::Mode(name, is)),
        (0..8u8, 0..8u8).prop_map(|(from, to)| Op::Rename(from, to)),
    ]
}

/// Names of which some are directories of others, so that files, directories and links take each other's places.
const NAMES: [&str; 8] = ["a", "a/b", "a/b/c", "d", "d/e", "f g", "d/e/f", "h"];

fn name(at: u8) -> &'static str {
    NAMES[usize::from(at) % NAMES.len()]
}

fn make_way(scene: &Scene, name: &str) {
    let mut at = std::path::PathBuf::new();
    for part in std::path::Path::new(name).parent().into_iter().flat_map(|it| it.components()) {
        at.push(part);
        let path = scene.dir.join(&at);
        if path.is_symlink() || path.is_file() {
            std::fs::remove_file(path).expect("it is ours");
        }
    }
    std::fs::create_dir_all(scene.dir.join(&at)).expect("it is ours");
    let path = scene.dir.join(name);
    if path.is_symlink() || path.exists() {
        scene.remove(name);
    }
}

fn carry_out(scene: &Scene, op: &Op) {
    // Only within real directories: a path through a link is another path.
    let is_plain = |name: &str| {
        let parents = std::path::Path::new(name).ancestors().skip(1);
        parents.into_iter().all(|parent| !scene.dir.join(parent).is_symlink())
    };
    match op {
        Op::Write(at, text) => {
            make_way(scene, name(*at));
            scene.write(name(*at), &format!("{text}\n").repeat(usize::from(*text % 7)));
        }
        Op::Link(at, to) => {
            make_way(scene, name(*at));
            scene.link(name(*at), name(*to));
        }
        Op::Remove(at) if is_plain(name(*at)) => {
            let path = scene.dir.join(name(*at));
            if path.is_symlink() || path.exists() {
                scene.remove(name(*at));
            }
        }
        Op::Mode(at, is) if is_plain(name(*at)) => {
            let path = scene.dir.join(name(*at));
            if path.is_file() && !path.is_symlink() {
                scene.executable(name(*at), *is);
            }
        }
        Op::Rename(from, to) if is_plain(name(*from)) => {
            let path = scene.dir.join(name(*from));
            let is_within =
                name(*to).starts_with(name(*from)) || name(*from).starts_with(name(*to));
            if path.is_file() && !path.is_symlink() && !is_within {
                let bytes = std::fs::read(&path).expect("it is ours");
                scene.remove(name(*from));
                make_way(scene, name(*to));
                std::fs::write(scene.dir.join(name(*to)), bytes).expect("it is ours");
            }
        }
        Op::Remove(_) | Op::Mode(..) | Op::Rename(..) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_turn_comes_back_byte_for_byte(
        turns in prop::collection::vec(prop::collection::vec(op(), 1..6), 1..5),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        is_repository in any::<bool>(),
    ) {
        let mut scene = if is_repository { Scene::repository(&[]) } else { Scene::plain() };
        let mut taken = vec![(scene.take(), scene.files())];
        for ops in &turns {
            for op in ops {
                carry_out(&scene, op);
            }
            let snapshot = scene.take();
            let files = scene.files();
            let before: &Files = &taken.last().expect("the first").1;
            prop_assert_eq!(snapshot.is_same, *before == files, "the same files, the same tree");
            prop_assert_eq!(scene.listed(&snapshot), files.keys().cloned().collect::<Vec<_>>());
            taken.push((snapshot, files));
        }
        for at in order {
            let (snapshot, files) = &taken[at.index(taken.len())];
            let snapshot = snapshot.clone();
            scene.restore(&snapshot);
            prop_assert_eq!(&scene.files(), files);
        }
    }
}
