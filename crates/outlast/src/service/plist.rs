//! The launchd agent, as a property list. Text only; what is done with it is `launchd`'s.

use super::description::{ARGS, Description};
use super::file::MARK;
use super::launchd::LABEL;

pub(super) fn render(description: &Description) -> String {
    let arguments: String = std::iter::once(description.exe.as_str())
        .chain(ARGS)
        .map(|argument| format!("    <string>{}</string>\n", escaped(argument)))
        .collect();
    let environment: String = description
        .env
        .iter()
        .map(|(name, value)| format!("    <key>{name}</key><string>{}</string>\n", escaped(value)))
        .collect();
    let log = escaped(&description.log);
    // A daemon that was asked to stop exits with 0 and is left alone; after anything else it is started again.
    format!(
        "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!-- {MARK}; `outlast daemon uninstall` removes it. -->
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<plist version=\"1.0\">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{arguments}  </array>
  <key>EnvironmentVariables</key>
  <dict>
{environment}  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>AbandonProcessGroup</key>
  <true/>
  <key>ProcessType</key>
  <string>Interactive</string>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>StandardOutPath</key>
  <string>{log}</string>
  <key>StandardErrorPath</key>
  <string>{log}</string>
</dict>
</plist>
"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_the_text_is_escaped() {
        assert_eq!(escaped("/a&b/<c>"), "/a&amp;b/&lt;c&gt;");
    }
}
