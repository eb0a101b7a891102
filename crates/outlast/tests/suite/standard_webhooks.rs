//! What a webhook is told, verified by those who are not ours: the reference library of Standard Webhooks, and a
//! server that speaks TLS.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Background, Home, text};
use crate::notices::until_settled;
use crate::python;
use crate::receiver::{Receiver, Told};

const VERSION: &str = "standardwebhooks==1.0.0";

/// Verifies the body on standard input with the arguments: secret, id, timestamp, signature.
const SCRIPT: &str = "
import sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
secret, id, at, signature = sys.argv[1:]
headers = {'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature}
try:
    Webhook(secret).verify(open(0).read(), headers)
except WebhookVerificationError as error:
    print(error)
    sys.exit(3)
";

/// A python that has the library. A test that cannot have it has not passed.
fn python() -> PathBuf {
    python::with("webhooks-library", &[VERSION]).unwrap_or_else(|why| panic!("{why}"))
}

/// What the library says to a notice under this secret.
fn verify(secret: &str, told: &Told) -> Result<(), String> {
    use std::io::Write;
    use std::process::Stdio;

    let headers =
        ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| told.header(name));
    let mut asked = Command::new(python())
        .args(["-c", SCRIPT, secret])
        .args(headers)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut stdin = asked.stdin.take().expect("it is piped");
    stdin.write_all(told.body.as_bytes()).expect("it reads");
    drop(stdin);
    let output = asked.wait_with_output().expect("it is our child");
    match output.status.code() {
        Some(0) => Ok(()),
        Some(3) => Err(text(&output.stdout)),
        other => panic!("python ended with {other:?}"),
    }
}

#[test]
fn slow_the_reference_library_takes_what_we_sign_and_nothing_else() {
    let new = "whsec_bmV3IHNlY3JldCBvZiBleGFjdGx5IDMyIGJ5dGVzISE=";
    let old = "whsec_b2xkIHNlY3JldCBvZiBleGFjdGx5IDMyIGJ5dGVzISE=";
    let stranger = "whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldCwgMzIgYnl0ZXM=";
    let (home, receiver) = (Home::new(), Receiver::new());
    let url = receiver.url("/");
    let config = format!(
        "[sinks.one]\nkind = \"webhook\"\nurl = \"{url}\"\nsecret = \"{new}\"\n\
         [sinks.both]\nkind = \"webhook\"\nurl = \"{url}\"\nsecrets = [\"{new}\", \"{old}\"]\n"
    );
    fs::write(home.path().join("config.toml"), config).expect("the test's directory is ours");
    let long = "i=0; while [ $i -lt 2000 ]; do echo \"línea $i \\\"quoted\\\"\"; i=$((i+1)); done";
    let tell = |sink: &str| {
        let before = receiver.told().len();
        let id = home.ok(&["run", "-d", "--notify", sink, "--", "sh", "-c", long]);
        until_settled(&home, &id);
        receiver.told()[before].clone()
    };
    let one = tell("one");
    assert_eq!(verify(new, &one), Ok(()));
    assert!(verify(stranger, &one).is_err() && verify(old, &one).is_err());
    let both = tell("both");
    assert_eq!(both.header("webhook-signature").split(' ').count(), 2);
    assert_eq!((verify(new, &both), verify(old, &both)), (Ok(()), Ok(())));
    assert!(verify(stranger, &both).is_err());
    let tampered = |change: &dyn Fn(&mut Told)| {
        let mut told = one.clone();
        change(&mut told);
        verify(new, &told)
    };
    let set = |told: &mut Told, name: &str, value: String| {
        drop(told.headers.insert(name.to_owned(), value));
    };
    assert!(tampered(&|told| told.body = told.body.replace("completed", "stopped!!")).is_err());
    assert!(tampered(&|told| told.body.push(' ')).is_err());
    assert!(tampered(&|told| set(told, "webhook-id", "another".to_owned())).is_err());
    assert!(
        tampered(&|told| {
            let at: u64 = told.header("webhook-timestamp").parse().expect("a time");
            set(told, "webhook-timestamp", (at + 1).to_string());
        })
        .is_err()
    );
}

/// A server that takes one request over TLS, and prints its port first.
const TLS_SERVER: &str = "
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers['content-length']))
        self.send_response(204)
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + '.crt', sys.argv[1] + '.key')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
";

/// A certificate for 127.0.0.1 that vouches for itself.
fn certificate(base: &std::path::Path) {
    let (key, crt) = (base.with_extension("key"), base.with_extension("crt"));
    let made = python::run(
        Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
            ])
            .args([
                "-addext",
                "subjectAltName=IP:127.0.0.1",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ])
            .arg("-keyout")
            .arg(key)
            .arg("-out")
            .arg(crt),
    );
    assert!(made.is_ok(), "{made:?}");
}

#[test]
fn a_server_is_told_over_tls_only_if_the_machine_trusts_it() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let (home, stranger) = (Home::new(), Home::new());
    let (ours, theirs) = (home.scratch().join("ours"), home.scratch().join("theirs"));
    certificate(&ours);
    certificate(&theirs);
    let server = Command::new("python3")
        .args(["-c", TLS_SERVER])
        .arg(&ours)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Background(server.expect("python starts"));
    let mut port = String::new();
    let stdout = server.0.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut port).expect("it says its port");
    let address = format!("webhook:https://127.0.0.1:{}/", port.trim());
    let home = home.env("SSL_CERT_FILE", ours.with_extension("crt"));
    home.ok(&["sink", "test", &address]);
    let stranger = stranger.env("SSL_CERT_FILE", theirs.with_extension("crt"));
    let output = stranger.output(&["sink", "test", &address]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no TLS with 127.0.0.1"), "{said}");
}
