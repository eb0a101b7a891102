//! What no event tells of, and what cannot be read: found, and seen to.

use outlast_engine::{Agent, BootId, Context, Input, RunSpec};
use outlast_home::layout::Layout;
use outlast_store::{Journal, Memory, Remove};
use outlast_wire::api::Mode;

use super::*;
use crate::ground::{Ground, Parts};
use crate::lineage::Lineage;
use crate::notify::Words;
use crate::runs::find::view_of;
use crate::service::Service;
use crate::settings::Settings;
use crate::world::World;

/// A daemon without a door, over a run that is paused, so that nothing is ever launched.
struct Stage {
    supervisor: Arc<Supervisor>,
    store: Memory,
    id: RunId,
    _home: tempfile::TempDir,
}

impl Stage {
    fn new(refusals: u32) -> Self {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::under(home.path());
        let store = Memory::new();
        store.fail_reads(refusals);
        let epoch = store.take_epoch().unwrap();
        let world = World::look(None).unwrap();
        let settings = Settings::read(layout.config_file());
        let diary = crate::diary::Diary::read(layout.diary(), false, world.now());
        let exe = "/nonexistent".into();
        let mode = Mode::Background;
        let service = Service::of(&[], 0, mode);
        let parts = Parts {
            layout,
            exe,
            build: "test",
            world,
            epoch,
            lineage: Lineage::of_epoch(epoch),
            diary,
            store: Arc::new(store.clone()),
            settings,
            mode,
            service,
        };
        Self {
            supervisor: Supervisor::new(Ground::new(parts), None),
            store,
            id: RunId("k3v9d2m7q0xa".to_owned()),
            _home: home,
        }
    }

    /// Writes a run into the journal, and tells no task.
    fn make_run(&self) {
        let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
        let spec = RunSpec::command(agent, "/".to_owned());
        let mut context = Context::new(Time(1), BootId("another".to_owned()));
        context.slot = outlast_engine::Slot::Taken;
        let words = Words { layout: &self.supervisor.ground.layout };
        let (append, seat) =
            FencedRun::create(&self.id, spec, &context, self.supervisor.ground.epoch, &words);
        self.store.append_wait(append).unwrap();
        let pause = seat
            .propose(&Input::PauseAsked(outlast_engine::Order::default()), &context, &words)
            .expect("it can be paused");
        self.store.append_wait(pause.append).unwrap();
    }
}

fn on_one_thread(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work);
}

#[test]
fn a_run_that_is_open_and_has_nobody_is_found_by_the_next_look() {
    on_one_thread(async {
        let stage = Stage::new(0);
        assert_eq!(load(&stage.supervisor), Ok(0));
        stage.make_run();
        assert!(stage.supervisor.handle(&stage.id).is_none());
        look_for_missed(&stage.supervisor).await;
        reconcile(&stage.supervisor);
        assert!(stage.supervisor.handle(&stage.id).is_some());
        assert!(!stage.supervisor.restarts.is_lost(&stage.id));
    });
}

/// The first answers of a daemon that has just started.
#[test]
fn a_run_that_was_not_looked_at_yet_is_being_checked_and_nothing_is_said_of_it_as_known() {
    on_one_thread(async {
        let stage = Stage::new(0);
        stage.make_run();
        let first = view_of(&stage.supervisor, &stage.id).await.unwrap();
        assert_eq!(first.phase.as_deref(), Some("checking"));
        assert!(first.health_why.is_some_and(|why| why.contains("has not looked at this run yet")));
        look_for_missed(&stage.supervisor).await;
        reconcile(&stage.supervisor);
        let then = view_of(&stage.supervisor, &stage.id).await.unwrap();
        assert_ne!(then.phase.as_deref(), Some("checking"));
    });
}

#[test]
fn a_run_that_is_being_made_is_left_to_whoever_makes_it() {
    on_one_thread(async {
        let stage = Stage::new(0);
        let _claim = stage.supervisor.claim(&stage.id).expect("no task has it");
        stage.make_run();
        look_for_missed(&stage.supervisor).await;
        reconcile(&stage.supervisor);
        assert!(stage.supervisor.handle(&stage.id).is_none());
    });
}

#[test]
fn a_run_that_cannot_be_read_is_kept_in_sight_and_taken_over_when_it_can() {
    on_one_thread(async {
        let stage = Stage::new(2);
        stage.make_run();
        assert_eq!(load(&stage.supervisor), Ok(1));
        assert!(stage.supervisor.quarantined().contains_key(&stage.id));
        assert!(stage.supervisor.handle(&stage.id).is_none());
        let look_at = reconcile(&stage.supervisor).expect("it is looked at again");
        assert!(look_at > stage.supervisor.ground.world.now());
        // What time would bring.
        take_over(&stage.supervisor, &stage.id);
        assert!(stage.supervisor.quarantined().contains_key(&stage.id), "it is damaged still");
        let later = reconcile(&stage.supervisor).expect("it is looked at again");
        assert!(later > look_at, "each time it takes longer");
        take_over(&stage.supervisor, &stage.id);
        assert!(stage.supervisor.handle(&stage.id).is_some());
        assert!(stage.supervisor.quarantined().is_empty());
    });
}

#[test]
fn a_run_that_was_removed_meanwhile_is_not_missed() {
    on_one_thread(async {
        let stage = Stage::new(1);
        stage.make_run();
        assert_eq!(load(&stage.supervisor), Ok(1));
        stage.store.remove(&stage.id, stage.supervisor.ground.epoch, Remove::Any).unwrap();
        take_over(&stage.supervisor, &stage.id);
        assert!(stage.supervisor.quarantined().is_empty());
        assert_eq!(reconcile(&stage.supervisor), None);
        assert!(!stage.supervisor.has_open());
    });
}
