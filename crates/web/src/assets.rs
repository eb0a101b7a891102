//! The page's own files: as they were written, packed by the build and served from memory.

use std::io::Read;

use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH,
    VARY,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;

use crate::refusal::Refusal;

struct Asset {
    name: &'static str,
    tag: &'static str,
    packed: &'static [u8],
}

const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.in"));

/// Every page is the same document; its address says what it shows.
pub(crate) async fn page(headers: HeaderMap) -> Response {
    answer("index.html", &headers)
}

/// The terminal of a run, which is looked at in a document of its own.
pub(crate) async fn terminal(headers: HeaderMap) -> Response {
    answer("terminal.html", &headers)
}

/// One run, for the holder of a read-only link.
pub(crate) async fn link(headers: HeaderMap) -> Response {
    answer("link.html", &headers)
}

pub(crate) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    answer(&name, &headers)
}

fn answer(name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return Refusal::silent(StatusCode::NOT_FOUND).into_response();
    };
    let has = |header, wanted: &str| {
        let values = headers.get_all(header).iter().filter_map(|it| it.to_str().ok());
        values.flat_map(|it| it.split(',')).any(|it| it.trim().split(';').next() == Some(wanted))
    };
    let mut response = match () {
        () if has(IF_NONE_MATCH, asset.tag) => StatusCode::NOT_MODIFIED.into_response(),
        () if has(ACCEPT_ENCODING, "gzip") => {
            ([(CONTENT_ENCODING, "gzip")], asset.packed).into_response()
        }
        () => match unpacked(asset.packed) {
            Ok(bytes) => bytes.into_response(),
            Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        },
    };
    let more = response.headers_mut();
    more.insert(CONTENT_TYPE, HeaderValue::from_static(kind(name)));
    more.insert(ETAG, HeaderValue::from_static(asset.tag));
    // Asked for anew each time, so that a page never runs with files of two builds.
    more.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    more.insert(VARY, HeaderValue::from_static("accept-encoding"));
    response
}

fn unpacked(packed: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, kind)| kind) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a first visit may take over the wire.
    const MOST: usize = 60 * 1024;

    fn is_later(name: &str) -> bool {
        ["terminal.", "link."].iter().any(|start| name.starts_with(start))
    }

    #[test]
    fn the_first_load_is_small() {
        // The terminal and shared runs are documents of their own, which bring their files when they are opened.
        let first = ASSETS.iter().filter(|asset| !is_later(asset.name));
        let all: usize = first.map(|asset| asset.packed.len()).sum();
        assert!(all <= MOST, "{all} bytes");
        assert!(ASSETS.iter().any(|asset| asset.name == "index.html"));
    }

    #[test]
    fn the_page_has_no_way_to_make_markup_of_text() {
        let banned = ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "DOMParser"];
        let banned = banned.into_iter().chain(["eval(", "new Function", "srcdoc"]);
        let banned: Vec<&str> = banned.chain(["javascript:", "document.cookie"]).collect();
        for asset in ASSETS {
            let text = String::from_utf8(unpacked(asset.packed).unwrap()).unwrap();
            for word in &banned {
                assert!(!text.contains(word), "{}: {word}", asset.name);
            }
            // A page that is loaded when it is opened is one of these files, by its name.
            for (_, rest) in
                text.match_indices("import(").map(|(at, it)| text.split_at(at + it.len()))
            {
                assert!(rest.starts_with("'./"), "{}: an import that is not a name", asset.name);
            }
            for line in text.lines().filter(|line| !line.contains("http://www.w3.org/2000/svg")) {
                assert!(!line.contains("://"), "{} names another place: {line}", asset.name);
            }
        }
    }
}
