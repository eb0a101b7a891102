//! What is written for service managers is what they read: by `systemd-analyze verify`, which starts nothing,
//! and by the property list parser of Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Home, skip, text};

/// Everything that a unit or a property list could trip over, in the name of a directory.
const NASTY: &str = r#"a b%h$HOME"q"\t&<c>'"#;
/// And without what systemd takes in no program's path.
const HARD: &str = "a b%h$HOME&<c>";

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// The program under another name, since its own path is written down.
fn program_in(dir: &Path) -> PathBuf {
    fs::create_dir_all(dir).expect("the scratch directory is ours");
    crate::programs::link(&dir.join("outlast"))
}

/// What is printed, and the home that it was printed for.
fn printed(home: &Home, manager: &str) -> String {
    let program = program_in(&home.scratch().join(HARD));
    let mut command = home.command(program.to_str().expect("it is UTF-8"));
    command.args(["daemon", "install", "--print", "--manager", manager]);
    command.env("PATH", format!("/usr/bin:{}", home.scratch().join(NASTY).display()));
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn systemd_finds_no_fault_with_the_unit() {
    if !has("systemd-analyze") {
        return skip("there is no systemd-analyze; Debian has it in the package systemd");
    }
    let home = Home::named(NASTY);
    let unit = home.scratch().join("outlast.service");
    fs::write(&unit, printed(&home, "systemd")).expect("the scratch directory is ours");
    let faults = verify(&home, &unit);
    assert_eq!(faults, "");
    // It would say so.
    let bad = fs::read_to_string(&unit)
        .expect("it was written")
        .replace("WatchdogSec=120", "WatchdogSec=soon");
    fs::write(&unit, bad).expect("the scratch directory is ours");
    assert!(verify(&home, &unit).contains("soon"));
}

/// Reads the unit as a user manager would, and starts nothing: not even the programs that would add to a
/// manager's environment.
fn verify(home: &Home, unit: &Path) -> String {
    let (runtime, empty) = (home.scratch().join("runtime"), home.scratch().join("empty"));
    fs::create_dir_all(&runtime).expect("the scratch directory is ours");
    fs::create_dir_all(&empty).expect("the scratch directory is ours");
    let output = Command::new("systemd-analyze")
        .args(["verify", "--user", "--man=no"])
        .arg(unit)
        .env_clear()
        .env("HOME", home.scratch())
        .env("XDG_RUNTIME_DIR", runtime)
        .env("SYSTEMD_ENVIRONMENT_GENERATOR_PATH", empty)
        .output()
        .expect("it was found on PATH");
    let said = text(&output.stdout) + &text(&output.stderr);
    // Units of this machine that it reads beside ours may have faults of their own.
    let is_ours = |line: &&str| line.contains("outlast") || !line.contains(".service");
    let said: Vec<&str> = said.lines().filter(is_ours).collect();
    if said.is_empty() && !output.status.success() {
        return format!("{}", output.status);
    }
    said.join("\n")
}

#[test]
fn the_property_list_has_exactly_the_keys_that_are_meant() {
    if !has("python3") {
        return skip("there is no python3 to read a property list with");
    }
    let home = Home::named(NASTY);
    let plist = printed(&home, "launchd");
    let path = home.scratch().join("agent.plist");
    fs::write(&path, &plist).expect("the scratch directory is ours");
    // A parser of XML first, which is strict where the other is not.
    let script = "import json,plistlib,sys,xml.dom.minidom as m\n\
                  b=open(sys.argv[1],'rb').read()\nm.parseString(b)\nprint(json.dumps(plistlib.loads(b, fmt=plistlib.FMT_XML)))";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(&path)
        .output()
        .expect("it was found on PATH");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read: Value = serde_json::from_slice(&output.stdout).expect("it printed JSON");
    let program = home.scratch().join(HARD).join("outlast");
    let log = home.state().join("service.log");
    assert_eq!(
        read,
        json!({
            "Label": "dev.outlast.daemon",
            "ProgramArguments": [program, "daemon", "run", "--wait"],
            "EnvironmentVariables": {
                "PATH": format!("/usr/bin:{}", home.scratch().join(NASTY).display()),
                "OUTLAST_HOME": home.path(),
            },
            "RunAtLoad": true,
            "KeepAlive": { "SuccessfulExit": false },
            "AbandonProcessGroup": true,
            "ProcessType": "Interactive",
            "ThrottleInterval": 10,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        })
    );
}

#[test]
fn a_path_that_cannot_be_written_down_is_refused() {
    let home = Home::named("two\nlines");
    let error = home.fails(2, &["daemon", "install", "--print"]);
    assert!(
        error.contains("OUTLAST_HOME cannot be written down") && error.contains("hint:"),
        "{error}"
    );
}
