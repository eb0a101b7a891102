//! The OpenAPI document as others read it: a validator, a client that sends what it describes, and a generator of clients.

use std::fs;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::harness::{Home, skip, str_of};
use crate::{metrics, python};

const PACKAGES: [&str; 3] =
    ["openapi-spec-validator==0.9.0", "schemathesis==4.32.5", "openapi-python-client==0.29.1"];

/// A python that has the tools; `None`, and a word about it, without the package index.
fn python_with_tools() -> Option<&'static Path> {
    static MADE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match MADE.get_or_init(|| python::with("openapi-tools", &PACKAGES)) {
        Ok(python) => Some(python),
        Err(why) => {
            skip(&format!("the tools for OpenAPI cannot be had: {why}"));
            None
        }
    }
}

fn tool(home: &Home, module: &str) -> Option<Command> {
    let mut tool = home.command(python_with_tools()?.to_str()?);
    // Nothing is written beside the hooks, which are part of the sources.
    tool.args(["-m", module]).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(tool)
}

/// The document as this daemon serves it, in a file.
fn document(home: &Home) -> PathBuf {
    home.ok(&["daemon", "start"]);
    let (status, document) = metrics::get(home, "/v1/openapi.json");
    assert_eq!(status, 200, "{document}");
    let path = home.scratch().join("openapi.json");
    fs::write(&path, document).expect("the test's directory is ours");
    path
}

fn socket(home: &Home) -> PathBuf {
    PathBuf::from(str_of(&home.json(&["daemon", "status", "--json"]), "socket"))
}

#[test]
fn a_validator_finds_nothing_in_the_document() {
    let home = Home::new();
    let Some(mut validator) = tool(&home, "openapi_spec_validator") else { return };
    let said = python::run(validator.arg(document(&home)));
    assert!(said.is_ok(), "{said:?}");
}

/// Half of what it sends is what the document describes, and half is not.
#[test]
fn a_fuzzing_client_finds_no_failure_and_no_undocumented_status() {
    let home = Home::new();
    let Some(mut client) = tool(&home, "schemathesis.cli") else { return };
    let document = document(&home);
    let daemon = home.daemon_pid();
    home.ok(&["run", "--name", "fuzzed", "--", "echo", "printed"]);
    home.ok(&["trigger", "add", "fuzzed", "--webhook", "--", "true"]);
    home.ok(&["trigger", "pause", "fuzzed"]);
    let scratch = home.scratch().join("fuzzed");
    fs::create_dir(&scratch).expect("the test's directory is ours");
    client.env("SCHEMATHESIS_HOOKS", here("openapi/hooks.py")).env("OUTLAST_FUZZ_DIR", &scratch);
    client.arg("run").arg(document).args(["--url", &in_front_of(socket(&home))]);
    client.args(["--seed", "12", "--max-examples", "5", "--phases", "examples,coverage,fuzzing"]);
    client.args(["--generation-database", "none", "--no-shrink", "--warnings", "off"]);
    client.args(["--request-timeout", "30", "--max-failures", "5"]);
    // What ends the daemon, and what has no end.
    let left_out = "/v1/(watch|daemon/(stop|restart|handover)|runs/.run./attach)$";
    client.args(["--exclude-path-regex", left_out]);
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,\
        response_schema_conformance,unsupported_method,allow_header_conformance";
    client.args(["--checks", checks]);
    let said = python::run(&mut client).unwrap_or_else(|said| panic!("{said}"));
    assert!(said.contains("No issues found"), "{said}");
    assert_eq!(home.daemon_pid(), daemon, "the daemon has died of it");
    let doctor: Value = home.json(&["doctor", "--json"]);
    let is_problem = |finding: &&Value| finding["level"] == "problem";
    let problems = doctor["findings"].as_array().into_iter().flatten().find(is_problem);
    assert_eq!(problems, None);
}

#[test]
fn a_client_that_is_generated_from_the_document_starts_and_lists_a_run() {
    let home = Home::new();
    let Some(mut generate) = tool(&home, "openapi_python_client") else { return };
    let document = document(&home);
    generate.args(["generate", "--meta", "none", "--path"]).arg(document);
    generate.arg("--output-path").arg(home.scratch().join("outlast_client"));
    python::run(&mut generate).unwrap_or_else(|said| panic!("{said}"));
    let Some(mut client) = python_with_tools().map(Command::new) else { return };
    client.env("PYTHONPATH", home.scratch()).arg(here("openapi/generated.py"));
    let said = python::run(client.arg(socket(&home)).arg(home.scratch()));
    let id = said.unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(home.wait(id.trim()), 0);
}

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite").join(file)
}

/// A loopback address in front of a unix socket, for clients that know only TCP.
fn in_front_of(socket: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // A client whose daemon is gone sees its connection end.
            let _ended = UnixStream::connect(&socket).and_then(|daemon| carry(client, daemon));
        }
    });
    format!("http://127.0.0.1:{port}")
}

/// Carries bytes in both directions, each in a thread of its own, until either side is done.
fn carry(client: TcpStream, daemon: UnixStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (mut from_client, mut to_daemon) = (client.try_clone()?, daemon.try_clone()?);
    let (mut from_daemon, mut to_client) = (daemon, client);
    std::thread::spawn(move || {
        let _ended = io::copy(&mut from_client, &mut to_daemon);
        let _gone = to_daemon.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        let _ended = io::copy(&mut from_daemon, &mut to_client);
        let _gone = to_client.shutdown(Shutdown::Both);
    });
    Ok(())
}
