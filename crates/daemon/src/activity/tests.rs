//! Files as agents, drivers and accidents leave them.

use std::fs::{self, OpenOptions};
use std::io::Write;

use super::*;

const STARTED: &str = r#"{"at_ms":5,"event":"tool_started","id":"a","name":"Bash","about":"make"}"#;
const ENDED: &str = r#"{"at_ms":6,"event":"tool_ended","id":"a","is_error":false}"#;

struct Stage {
    _home: tempfile::TempDir,
    dir: AttemptDir,
    followed: Followed,
    world: World,
}

impl Stage {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir(home.path().to_owned());
        let world = World::look(None).expect("this machine has a boot id");
        Self { _home: home, dir, followed: Followed::new((1, 1), None, None), world }
    }

    fn append(&self, bytes: &[u8]) {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(self.dir.agent_events());
        file.and_then(|mut file| file.write_all(bytes)).expect("the directory is ours");
    }

    fn line(&self, line: &str) {
        self.append(format!("{line}\n").as_bytes());
    }

    fn look(&mut self) -> Activity {
        let unreadable = self.followed.read_on(&self.dir).err();
        self.followed.activity(unreadable, &self.world)
    }

    fn tool(&mut self) -> Option<String> {
        self.look().tool.map(|tool| tool.name)
    }
}

#[test]
fn a_look_reads_on_from_the_last_one() {
    let mut stage = Stage::new();
    assert_eq!(stage.look(), Activity::default(), "the driver has not begun");
    stage.line(STARTED);
    assert_eq!(stage.tool().as_deref(), Some("Bash"));
    let (half, rest) = ENDED.split_at(20);
    stage.append(half.as_bytes());
    assert_eq!(stage.tool().as_deref(), Some("Bash"), "half a line is no event yet");
    stage.line(rest);
    assert_eq!((stage.tool(), stage.look().unread_bytes), (None, 0));
}

#[test]
fn what_cannot_be_read_is_said_and_not_shown_as_nothing() {
    let mut stage = Stage::new();
    stage.line(STARTED);
    stage.look();
    fs::remove_file(stage.dir.agent_events()).expect("it is ours");
    assert!(stage.look().unreadable.is_some(), "it was there");
    fs::create_dir(stage.dir.agent_events()).expect("the directory is ours");
    assert!(stage.look().unreadable.is_some());
    let mut stage = Stage::new();
    fs::create_dir(stage.dir.transcript()).expect("the directory is ours");
    assert!(stage.look().unreadable.is_some(), "the driver has begun, and its file is gone");
}

#[test]
fn a_pipe_in_its_place_makes_no_look_wait() {
    let mut stage = Stage::new();
    let path = stage.dir.agent_events();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("a fifo");
    assert!(stage.look().unreadable.is_some());
}

#[test]
fn a_file_that_was_cut_or_replaced_is_read_anew() {
    let mut stage = Stage::new();
    stage.line(STARTED);
    stage.line(r#"{"at_ms":5,"event":"model","name":"m"}"#);
    assert_eq!(stage.look().model.as_deref(), Some("m"));
    OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(stage.dir.agent_events())
        .expect("it is ours");
    assert_eq!(stage.look(), Activity::default());
    stage.line(STARTED);
    stage.look();
    fs::remove_file(stage.dir.agent_events()).expect("it is ours");
    stage.line(
        r#"{"at_ms":5,"event":"model","name":"another, in a file that is longer than the first"}"#,
    );
    assert_eq!(stage.tool(), None);
}

#[test]
fn damaged_and_endless_lines_are_left_out_and_counted() {
    let mut stage = Stage::new();
    stage.line(STARTED);
    stage.line("garbage");
    let look = stage.look();
    assert_eq!((look.tool, look.unread_bytes), (None, 8), "its end may have been in there");
    stage.append(&vec![b'x'; 3 << 20]);
    assert_eq!(stage.look().unread_bytes, 8 + (3 << 20));
    stage.line("");
    stage.line(STARTED);
    let look = stage.look();
    assert_eq!(look.tool.map(|tool| tool.name).as_deref(), Some("Bash"));
    assert_eq!(look.unread_bytes, 9 + (3 << 20));
}

#[test]
fn of_more_than_one_look_takes_the_end_is_read() {
    let mut stage = Stage::new();
    stage.line(STARTED);
    stage.look();
    let said = format!(r#"{{"at_ms":5,"event":"said","text":"{}"}}"#, "x".repeat(1000));
    let many = format!("{said}\n").repeat(20_000);
    stage.append(many.as_bytes());
    stage.line(r#"{"at_ms":5,"event":"context","used":50,"window":200}"#);
    let look = stage.look();
    assert_eq!(look.context.and_then(|context| context.fill), Some(0.25));
    assert_eq!(look.tool, None, "what became of it is not known");
    assert!(look.unread_bytes > 3 << 20, "{}", look.unread_bytes);
}

#[test]
fn texts_of_an_agent_cannot_act_on_a_terminal() {
    let mut stage = Stage::new();
    stage.line(r#"{"at_ms":5,"event":"tool_started","id":"a","name":"\u001b[2JBa\u0007sh\n","about":"\u001b]0;title\u0007make"}"#);
    let tool = stage.look().tool.expect("a tool");
    assert_eq!((tool.name.as_str(), tool.about.as_str()), ("Bash", "make"));
}

#[test]
fn a_window_that_was_said_before_holds_for_the_same_model() {
    let home = tempfile::tempdir().expect("a directory");
    let run = RunDir(home.path().to_owned());
    let first = run.attempt(1, 2);
    fs::create_dir(&first.0).expect("the directory is ours");
    let lines = "{\"at_ms\":1,\"event\":\"model\",\"name\":\"m\"}\n{\"at_ms\":1,\"event\":\"context\",\"used\":1,\"window\":400}\n";
    fs::File::create(first.agent_events())
        .and_then(|mut file| file.write_all(lines.as_bytes()))
        .expect("the directory is ours");
    assert_eq!(window_before(&run, (1, 2)), None);
    let known = window_before(&run, (2, 1));
    assert_eq!(known, Some(("m".to_owned(), 400)));
    for (model, fill) in [("m", Some(0.25)), ("n", None)] {
        let mut stage = Stage::new();
        stage.followed.window_before.clone_from(&known);
        stage.line(&format!(r#"{{"at_ms":5,"event":"model","name":"{model}"}}"#));
        stage.line(r#"{"at_ms":5,"event":"context","used":100,"window":null}"#);
        assert_eq!(stage.look().context.and_then(|context| context.fill), fill, "{model}");
    }
}

#[test]
fn what_earlier_attempts_at_the_turn_have_used_is_added() {
    let home = tempfile::tempdir().expect("a directory");
    let run = RunDir(home.path().to_owned());
    let first = run.attempt(2, 1);
    fs::create_dir(&first.0).expect("the directory is ours");
    let spent = "{\"at_ms\":1,\"event\":\"spent\",\"input_tokens\":10,\"cost_usd_micros\":5}\n";
    fs::File::create(first.agent_events())
        .and_then(|mut file| file.write_all(spent.as_bytes()))
        .expect("the directory is ours");
    let known = earlier(&run, (2, 3)).expect("the first has said so");
    assert_eq!((known.input_tokens, known.is_floor), (Some(10), false));
    fs::create_dir_all(run.attempt(2, 2).agent_events()).expect("the directory is ours");
    assert!(earlier(&run, (2, 3)).expect("the first has said so").is_floor);
}
