//! The links of notices: a page without script that shows what a link would do, and does it when it is posted.
//!
//! Works without a session, for any browser that has the link. A GET never acts: previews and scanners fetch addresses. The link
//! itself is judged by the daemon, which made it.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use outlast_client::ask::Ask;
use outlast_client::session::Session;
use outlast_wire::api::LinkView;
use serde_json::json;

use crate::refusal::Refusal;
use crate::state::Web;

/// No link is longer.
const LONGEST: usize = 400;

pub(crate) async fn show(State(web): State<Arc<Web>>, Path(token): Path<String>) -> Response {
    answer(&web, &token, Ask::get).await
}

pub(crate) async fn press(State(web): State<Arc<Web>>, Path(token): Path<String>) -> Response {
    answer(&web, &token, |path| Ask::post(path, &json!({}))).await
}

async fn answer(web: &Web, token: &str, ask: impl FnOnce(&str) -> Ask) -> Response {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if token.len() > LONGEST || !token.bytes().all(is_fit) {
        return page(StatusCode::NOT_FOUND, "No such link", "<p>This is no link of a notice.</p>");
    }
    let ask = ask(&format!("/v1/links/{token}"));
    match Session::again(&web.world).call::<LinkView>(&ask).await {
        Ok(view) => page(StatusCode::OK, "Answer", &told(&view)),
        Err(problem) => {
            let refusal = Refusal::from(problem);
            let message = refusal.as_json()["message"].as_str().unwrap_or_default().to_owned();
            page(refusal.status(), "Refused", &format!("<p>{}</p>", plain(&message)))
        }
    }
}

fn told(view: &LinkView) -> String {
    let name = view.name.as_ref().map_or_else(String::new, |name| format!("{} ", plain(name)));
    let mut html = format!("<p>{name}<code>{}</code></p>", plain(&view.run));
    if let Some(question) = &view.question {
        write!(html, "<blockquote>{}</blockquote>", plain(question)).expect("a string takes it");
    }
    let (words, class) = match view.decision.as_str() {
        "approve" => ("Approve", "primary"),
        _ => ("Deny", "danger"),
    };
    match &view.over {
        Some(over) => write!(html, "<p role=\"status\">{}</p>", plain(over)),
        None => write!(
            html,
            "<form method=\"post\"><button class=\"{class}\">{words}</button></form>\
             <p class=\"dim\">The link works once, for this question only.</p>"
        ),
    }
    .expect("a string takes any text");
    html
}

fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} · outlast</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"stylesheet\" href=\"/ui/style.css\"></head>\
         <body><main><h1>{title}</h1>{body}</main></body></html>"
    );
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// A text that is nothing but text: markup is escaped, and what cannot be seen is shown as its number.
fn plain(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\n' | '\t' => html.push(char),
            '\u{200b}'..='\u{200f}'
            | '\u{061c}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' => {
                write!(html, "⟨{:x}⟩", u32::from(char)).expect("a string takes any text");
            }
            _ if char.is_control() => {
                write!(html, "⟨{:x}⟩", u32::from(char)).expect("a string takes any text");
            }
            _ => html.push(char),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_asks_is_text() {
        let view = LinkView {
            run: "k3m".to_owned(),
            name: Some("<script>x</script>".to_owned()),
            decision: "approve".to_owned(),
            question: Some("\"><img src=x onerror=1> \u{202e}?".to_owned()),
            over: None,
        };
        let html = told(&view);
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        assert!(html.contains("⟨202e⟩?") && html.contains("<form method=\"post\">"), "{html}");
        let over = told(&LinkView { over: Some("approved by <b>".to_owned()), ..view });
        assert!(over.contains("approved by &lt;b&gt;") && !over.contains("<form"), "{over}");
    }
}
