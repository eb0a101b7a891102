//! `cargo xtask web-types`: the page's modules against the daemon's own OpenAPI document.
//!
//! The page is written without a build step, so no compiler reads it. This has TypeScript read it, with types made from
//! the document that the daemon serves. The two packages come from npm into the build directory; without npm the check is
//! skipped and says so. Nothing of it is needed to build.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::private::{self, Private};
use crate::root::{self, Profile};

/// Pinned: the generator is written for the fifth TypeScript.
const PACKAGES: [&str; 2] = ["typescript@5.9.3", "openapi-typescript@7.13.0"];
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Ask this program for the document instead of building one
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let begin = Instant::now();
    let place = root::target().join("web-types");
    fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
    if let Err(why) = install(&place) {
        println!("web-types: 1 skipped: {why:#}");
        return Ok(());
    }
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize().with_context(|| binary.display().to_string())?,
        None => root::build(&["outlast"], Profile::Debug)?.join("outlast"),
    };
    fs::write(place.join("openapi.json"), document(&binary)?).context("the document")?;
    fs::write(place.join("tsconfig.json"), settings().to_string()).context("the settings")?;
    node(&place, "openapi-typescript/bin/cli.js", &["openapi.json", "-o", "openapi.d.ts"])?;
    node(&place, "typescript/bin/tsc", &["-p", "tsconfig.json"])?;
    let many = modules()?;
    println!("web-types: {many} modules passed in {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// Nothing is fetched if these very packages are there.
fn install(place: &Path) -> Result<()> {
    let (mark, wanted) = (place.join("packages"), PACKAGES.join(" "));
    if fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0"]);
    npm.arg("--prefix").arg(place).args(PACKAGES).stdin(Stdio::null());
    let output = npm.output().context("there is no npm")?;
    let told = String::from_utf8_lossy(&output.stderr);
    let told = told.lines().find(|line| line.starts_with("npm error")).unwrap_or_default();
    ensure!(output.status.success(), "npm or its registry cannot be reached: {told}");
    fs::write(mark, wanted).context("what is installed")
}

/// The OpenAPI document of a daemon that is started for it.
fn document(binary: &Path) -> Result<String> {
    let scratch = tempfile::Builder::new().prefix("web-types-").tempdir().context("a scratch")?;
    let outlast = Private::new(binary, scratch.path().join("home"))?;
    let asked = outlast.start_daemon().and_then(|_| ask(&outlast.home().join("run/daemon.sock")));
    drop(outlast);
    private::sweep(scratch.path())?;
    asked
}

fn ask(socket: &Path) -> Result<String> {
    let mut stream = UnixStream::connect(socket).context("the daemon's socket")?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    // The older protocol: the body ends with the connection.
    stream.write_all(b"GET /v1/openapi.json HTTP/1.0\r\nhost: outlast\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("the daemon's answer")?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.contains(" 200 ") => Ok(body.to_owned()),
        _ => bail!("the daemon answered {:?}", answer.lines().next().unwrap_or_default()),
    }
}

/// What may be missing counts as missing; code without annotations is not checked for the rest of `strict`.
fn settings() -> serde_json::Value {
    let web = root::repository().join("crates/web");
    json!({
        "compilerOptions": {
            "allowJs": true, "checkJs": true, "noEmit": true, "types": [],
            "target": "es2022", "module": "es2022", "moduleResolution": "bundler",
            "lib": ["es2023", "dom", "dom.iterable"],
            "strictNullChecks": true,
            "paths": { "outlast-openapi": ["./openapi.d.ts"] },
        },
        "include": [web.join("ui/*.js"), web.join("types/*.d.ts")],
    })
}

/// Runs a program of a package. What it says about our files is shown as it says it.
fn node(place: &Path, program: &str, args: &[&str]) -> Result<()> {
    let mut node = Command::new("node");
    node.arg(place.join("node_modules").join(program)).args(args).current_dir(place);
    let output = node.stdin(Stdio::null()).output().context("there is no node")?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    ensure!(output.status.success(), "{program} ended with {}:\n{said}", output.status);
    Ok(())
}

fn modules() -> Result<usize> {
    let ui = root::repository().join("crates/web/ui");
    let names = fs::read_dir(&ui).with_context(|| ui.display().to_string())?.flatten();
    Ok(names.filter(|it| it.path().extension().is_some_and(|it| it == "js")).count())
}
