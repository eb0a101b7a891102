//! Calls under keys, as `outlast call` makes them.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use outlast_client::call::{Call, Input, Outcome, call};
use outlast_wire::api::{CallClass, CallResult};
use serde_json::{Value, json};

use crate::arguments::{Arguments, wrong};
use crate::owner::{Done, Owner};

const USUAL_TIMEOUT_S: u64 = 600;

pub(crate) async fn make(owner: &Owner<'_>, args: &Arguments) -> Done {
    let command = args.command("command")?.ok_or_else(|| wrong("command is missing"))?;
    let class = match args.maybe_text("class")?.as_deref() {
        Some("read") => CallClass::Read,
        Some("idempotent") => CallClass::Idempotent,
        Some("keyed") => CallClass::Keyed,
        Some("unsafe") | None => CallClass::Unsafe,
        Some(other) => return Err(wrong(&format!("{other:?} is no class"))),
    };
    let key = owner.key(&args.text("key")?);
    let timeout = args.number("timeout_s")?.unwrap_or(USUAL_TIMEOUT_S);
    let wanted = Call {
        run: owner.run.clone(),
        env: vec![("OUTLAST_CALL_KEY".into(), key.clone().into())],
        key,
        class,
        command: command.into_iter().map(Into::into).collect(),
        dir: owner.workspace.clone(),
        input: Input::Given(Vec::new()),
        retry_failed: args.flag("retry_failed")?,
        timeout: Some(Duration::from_secs(timeout)),
    };
    Ok(told(&call(owner.world, &mut owner.session(), wanted).await?))
}

pub(crate) fn told(outcome: &Outcome) -> Value {
    let CallResult { exit_code, signal, why, stdout, stderr, stdout_left_out, stderr_left_out } =
        &outcome.result;
    let text = |bytes: &outlast_wire::OsText| {
        String::from_utf8_lossy(bytes.as_os_str().as_bytes()).into_owned()
    };
    json!({
        "key": outcome.key,
        "stored": outcome.is_stored,
        "exit_code": exit_code,
        "signal": signal,
        "why": why,
        "stdout": text(stdout),
        "stderr": text(stderr),
        "bytes_left_out": stdout_left_out.saturating_add(*stderr_left_out),
    })
}
