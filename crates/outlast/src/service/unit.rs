//! The systemd user unit. Text only; what is done with it is `systemd`'s.
//!
//! The daemon is one process of many: stopping it, or running out of memory beside it, must not end the runs.

use super::Shortfall;
use super::description::{ARGS, Description, PAGE_ARGS};
use super::file::MARK;

pub(super) fn render(description: &Description) -> Result<String, Shortfall> {
    let exe = fit(description)?;
    let environment = environment(description);
    let exec = exec_start(exe, &ARGS);
    // Why each is as it is stands in docs/service.md.
    Ok(format!(
        "\
# {MARK}; `outlast daemon uninstall` removes it.
# Settings of your own belong in a drop-in: systemctl --user edit outlast.service

[Unit]
Description=Outlast, the daemon that keeps agent loops going
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=notify
NotifyAccess=main
ExecStart={exec}
{environment}TimeoutStartSec=infinity
TimeoutStopSec=20
WatchdogSec=120
Restart=always
RestartSec=100ms
RestartPreventExitStatus=0
KillMode=process
Delegate=yes
OOMPolicy=continue
OOMScoreAdjust=0

[Install]
WantedBy=default.target
"
    ))
}

/// The page: it may end at any time, and comes back after a crash.
pub(super) fn page(description: &Description) -> Result<String, Shortfall> {
    let exe = fit(description)?;
    let environment = environment(description);
    let exec = exec_start(exe, &PAGE_ARGS);
    Ok(format!(
        "\
# {MARK}; `outlast daemon uninstall` removes it.
# Settings of your own belong in a drop-in: systemctl --user edit outlast-web.service

[Unit]
Description=Outlast, the page
After=outlast.service

[Service]
ExecStart={exec}
{environment}Restart=on-failure
RestartSec=5s

[Install]
WantedBy=default.target
"
    ))
}

/// The program, if systemd takes it.
fn fit(description: &Description) -> Result<&str, Shortfall> {
    let exe = &description.exe;
    if exe.contains(['"', '\'', '\\']) {
        return Err(Shortfall::new(format!(
            "systemd takes no program with a quote or a backslash in its path: {exe}"
        ))
        .hint("put outlast somewhere else, then install it from there"));
    }
    Ok(exe)
}

fn environment(description: &Description) -> String {
    let line = |(name, value): &(&str, String)| {
        format!("Environment={}\n", quoted(&format!("{name}={value}")))
    };
    description.env.iter().map(line).collect()
}

/// A program's own path is never searched for variables, so a dollar in it is not doubled; the colon keeps its
/// first argument as it is too.
fn exec_start(exe: &str, args: &[&str]) -> String {
    let as_it_is = if exe.contains('$') { ":" } else { "" };
    format!("{as_it_is}{} {}", quoted(exe), args.join(" "))
}

/// Text as systemd reads it back: within quotes a backslash and a quote are escaped, and a percent sign would
/// begin a specifier anywhere.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', r#"\""#).replace('%', "%%");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemd_would_expand_is_escaped() {
        assert_eq!(
            quoted(r#"PATH=/a b:/c%d:/e\f:/g"h:/$i"#),
            r#""PATH=/a b:/c%%d:/e\\f:/g\"h:/$i""#
        );
        assert_eq!(
            exec_start("/opt/o 1/outlast", &ARGS),
            r#""/opt/o 1/outlast" daemon run --wait"#
        );
        assert_eq!(exec_start("/opt/$o/outlast", &ARGS), r#":"/opt/$o/outlast" daemon run --wait"#);
    }

    #[test]
    fn the_unit_is_what_it_is_meant_to_be() {
        let description = Description {
            exe: "/usr/bin/outlast".to_owned(),
            env: vec![("PATH", "/usr/bin".to_owned()), ("OUTLAST_HOME", "/h".to_owned())],
            log: "/h/state/service.log".to_owned(),
        };
        let expected = "\
# Written by `outlast daemon install`; `outlast daemon uninstall` removes it.
# Settings of your own belong in a drop-in: systemctl --user edit outlast.service

[Unit]
Description=Outlast, the daemon that keeps agent loops going
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=notify
NotifyAccess=main
ExecStart=\"/usr/bin/outlast\" daemon run --wait
Environment=\"PATH=/usr/bin\"
Environment=\"OUTLAST_HOME=/h\"
TimeoutStartSec=infinity
TimeoutStopSec=20
WatchdogSec=120
Restart=always
RestartSec=100ms
RestartPreventExitStatus=0
KillMode=process
Delegate=yes
OOMPolicy=continue
OOMScoreAdjust=0

[Install]
WantedBy=default.target
";
        assert_eq!(render(&description), Ok(expected.to_owned()));
        let quoted = Description { exe: "/opt/\"o\"/outlast".to_owned(), ..description };
        assert!(render(&quoted).is_err());
    }
}
