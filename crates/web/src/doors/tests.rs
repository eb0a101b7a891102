//! Every refusal on every route of the router, over a real socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use outlast_client::world::World;
use serde_json::Value;

use super::{EXCHANGE, SHARED, TERMINALS};
use crate::listen::{Listeners, Place};
use crate::names::Door;
use crate::people::{Caller, Proxy, Role};
use crate::routes::{ROUTES, router};
use crate::shares::Wanted;
use crate::state::{Told, Web, Words};

/// A page that is served, without a daemon: what is refused never gets that far.
struct Served {
    port: u16,
    web: Arc<Web>,
}

fn serve() -> Served {
    serve_with(None)
}

fn serve_with(proxy: Option<Proxy>) -> Served {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let place = Place { port: Some(0), ..Place::default() };
            let listeners = Listeners::bind(place).await.expect("a free port");
            let words = Words {
                row: |_| Told { group: "ended", words: String::new() },
                view: |_| Told { group: "ended", words: String::new() },
                teller: || Box::new(|_| Vec::new()),
                env: Box::new(Vec::new),
                report: Box::new(|_| Ok(Value::Null)),
            };
            let port = listeners.port;
            let web = Arc::new(Web::new(
                World::new(Vec::new()),
                words,
                Door { port, is_tls: false, is_remote: false, public_url: None },
                proxy,
            ));
            tell.send(Served { port, web: web.clone() }).expect("the test waits");
            listeners.serve(router(web)).await;
        });
    });
    told.recv().expect("the page is served")
}

/// Sends these lines as they are; the status, and the whole answer.
fn ask(port: u16, method: &str, target: &str, headers: &[String]) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let body = if method == "GET" { "" } else { "{}" };
    let mut head = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
    head.push_str(&format!("content-length: {}\r\n", body.len()));
    headers.iter().for_each(|line| head.push_str(&format!("{line}\r\n")));
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers and hangs up");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {answer}")), answer)
}

fn routes() -> impl Iterator<Item = (String, String)> {
    ROUTES.iter().map(|(method, path)| {
        let path = path.replace("{run}", "k3mx7q9w2r5t").replace("{turn}", "1");
        let path = path.replace("{token}", "al1.k3m.7.yes.9.00.00").replace("{trigger}", "nightly");
        (method.to_uppercase(), path.replace("{file}", "app.js"))
    })
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn every_route_refuses_another_host_and_a_foreign_origin_before_anything_else() {
    let Served { port, web } = serve();
    let secret = web.exchange(web.link().unwrap().here.rsplit('=').next().unwrap()).unwrap();
    let good = [format!("authorization: Bearer {secret}"), "content-type: application/json".into()];
    let host = format!("host: 127.0.0.1:{port}");
    let own = format!("http://127.0.0.1:{port}");
    for (method, path) in routes() {
        let with = |more: &[String]| [more, &good[..]].concat();
        for wrong in [
            vec!["host: evil.test".to_owned()],
            vec![format!("host: evil.test:{port}")],
            vec!["host: 127.0.0.1".to_owned()],
            vec![format!("host: 127.0.0.1:{}", port ^ 1)],
            vec![format!("host: 127.0.0.1.:{port}")],
            vec![host.clone(), "host: evil.test".to_owned()],
            // What a name that was rebound looks like: the two agree.
            vec![format!("host: evil.test:{port}"), format!("origin: http://evil.test:{port}")],
            Vec::new(),
        ] {
            let (status, answer) = ask(port, &method, &path, &with(&wrong));
            assert!(matches!(status, 421 | 400), "{method} {path} {wrong:?}: {answer}");
            assert!(!answer.contains("\r\n\r\n<"), "a body for {wrong:?}: {answer}");
        }
        let absolute = format!("http://evil.test:{port}{path}");
        let (status, answer) = ask(port, &method, &absolute, &with(std::slice::from_ref(&host)));
        assert_eq!(status, 421, "{method} {absolute}: {answer}");
        for origin in [
            "http://evil.test".to_owned(),
            format!("http://127.0.0.1:{}", port ^ 1),
            format!("https://127.0.0.1:{port}"),
            "null".to_owned(),
            String::new(),
            format!("{own}, {own}"),
        ] {
            let wrong = [host.clone(), format!("origin: {origin}")];
            let (status, answer) = ask(port, &method, &path, &with(&wrong));
            assert_eq!(status, 403, "{method} {path} {origin:?}: {answer}");
        }
        if path.starts_with("/api/") {
            for site in ["cross-site", "same-site", "none"] {
                let wrong = [host.clone(), format!("sec-fetch-site: {site}")];
                let (status, _) = ask(port, &method, &path, &with(&wrong));
                assert_eq!(status, 403, "{method} {path} {site}");
            }
        }
    }
}

#[test]
fn every_route_below_api_needs_the_secret_of_a_session_that_goes_on() {
    let Served { port, web } = serve();
    let code = web.link().unwrap().here.rsplit('=').next().unwrap().to_owned();
    let secret = web.exchange(&code).unwrap();
    let ended = web.exchange(web.link().unwrap().here.rsplit('=').next().unwrap()).unwrap();
    web.end(&ended);
    let fresh = web.link().unwrap().here.rsplit('=').next().unwrap().to_owned();
    let host = format!("host: localhost:{port}");
    let json = "content-type: application/json";
    let mut held = 0;
    for (method, path) in routes().filter(|(_, path)| path.starts_with("/api/")) {
        if path == EXCHANGE || path.starts_with(TERMINALS) || path.starts_with(SHARED) {
            continue;
        }
        for wrong in [
            None,
            Some(String::new()),
            Some("Bearer ".to_owned()),
            Some(format!("Basic {secret}")),
            Some(format!("Bearer {ended}")),
            Some(format!("Bearer {code}")),
            Some(format!("Bearer {fresh}")),
            Some(format!("Bearer {}", "0".repeat(64))),
        ] {
            let mut headers = vec![host.clone(), json.to_owned()];
            headers.extend(wrong.iter().map(|it| format!("authorization: {it}")));
            let (status, answer) = ask(port, &method, &path, &headers);
            assert_eq!(status, 401, "{method} {path} {wrong:?}: {answer}");
        }
        // In an address or a cookie it is no secret.
        let there = format!("{path}?token={secret}&k={secret}");
        let cookie = format!("cookie: session={secret}");
        let (status, _) = ask(port, &method, &there, &[host.clone(), cookie, json.to_owned()]);
        assert_eq!(status, 401, "{method} {there}");
        let good = format!("authorization: Bearer {secret}");
        if method != "GET" {
            let plain = "content-type: text/plain".to_owned();
            let (status, _) = ask(port, &method, &path, &[host.clone(), good.clone(), plain]);
            assert_eq!(status, 415, "{method} {path}");
        }
        if path != "/api/session/end" {
            let (status, answer) =
                ask(port, &method, &path, &[host.clone(), good, json.to_owned()]);
            assert!(![401, 403, 404, 415, 421].contains(&status), "{method} {path}: {answer}");
            held += 1;
        }
    }
    assert!(held > 10, "the routes were tried: {held}");
}

/// The secret of a read-only link to a run.
fn lent(web: &Web, output: bool) -> (String, String) {
    let wanted = Wanted { run: "k3mx7q9w2r5t".to_owned(), hours: 1, output };
    let (link, shared) = web.share(wanted).unwrap();
    (link.here.rsplit('#').next().unwrap().to_owned(), shared.id)
}

#[test]
fn a_read_only_link_reaches_its_own_routes_and_nothing_else() {
    let Served { port, web } = serve();
    let ((lent, id), (silent, _)) = (lent(&web, true), lent(&web, false));
    let host = format!("host: 127.0.0.1:{port}");
    let json = "content-type: application/json".to_owned();
    let with =
        |secret: &str| [host.clone(), json.clone(), format!("authorization: Bearer {secret}")];
    let mut open = Vec::new();
    for (method, path) in routes().filter(|(_, path)| path.starts_with("/api/")) {
        if path == EXCHANGE {
            continue;
        }
        let (status, answer) = ask(port, &method, &path, &with(&lent));
        if path.starts_with(SHARED) {
            assert_eq!(method, "GET", "{path}: a link changes nothing");
            // There is no daemon here, so whatever is let in fails later.
            assert!(![401, 403, 404, 415, 421].contains(&status), "{method} {path}: {answer}");
            let (quiet, answer) = ask(port, &method, &path, &with(&silent));
            assert_eq!(quiet == 403, path.contains("/output"), "{method} {path}: {answer}");
            open.push(path);
        } else {
            assert_eq!(status, 403, "{method} {path}: {answer}");
        }
    }
    let own = ["run", "turns", "live", "output", "output/search"].map(|it| format!("{SHARED}{it}"));
    assert_eq!(open, own, "a new route is added to this list on purpose");
    // Neither the run of a query nor that of a path is looked at.
    let (status, _) = ask(port, "GET", "/api/s/run/x7q", &with(&lent));
    assert_eq!(status, 404);
    // The link's secret is no code and no ticket, and the secret of a session is no link.
    assert!(web.exchange(&lent).is_err());
    assert!(web.ticket(&lent, "k3mx7q9w2r5t", false, &Caller::owner()).is_err());
    let session = web.exchange(web.link().unwrap().here.rsplit('=').next().unwrap()).unwrap();
    for path in own {
        assert_eq!(ask(port, "GET", &path, &with(&session)).0, 401, "{path}");
        assert_eq!(ask(port, "GET", &path, &with(&id)).0, 401, "{path}: an id is no secret");
    }
    assert_eq!(web.unshare(&id).len(), 1);
    for (method, path) in routes().filter(|(_, path)| path.starts_with("/api/")) {
        if path != EXCHANGE && !path.starts_with(TERMINALS) {
            assert_eq!(ask(port, &method, &path, &with(&lent)).0, 401, "{method} {path}: revoked");
        }
    }
}

const SHARED_SECRET: &str = "correct-horse-battery";

fn serve_behind_a_proxy() -> Served {
    let roles = [("anna", Role::Admin), ("otto", Role::Operator), ("vera", Role::Viewer)];
    let roles = roles.map(|(name, role)| (name.to_owned(), role)).to_vec();
    serve_with(Some(Proxy::new("Remote-User", "X-Proxy-Secret", SHARED_SECRET, roles).unwrap()))
}

/// Asks for a session as the page does, with these headers from the proxy or from a liar.
fn enter(port: u16, more: &[&str]) -> (u16, Value) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let body = "{\"proxy\":true}";
    let mut head =
        format!("POST {EXCHANGE} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n");
    head.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
    more.iter().for_each(|line| head.push_str(&format!("{line}\r\n")));
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

#[test]
fn a_name_without_the_secret_of_the_proxy_changes_nothing_and_two_of_them_are_refused() {
    let Served { port, .. } = serve_behind_a_proxy();
    let origin = format!("origin: http://127.0.0.1:{port}");
    let (anna, good) = ("remote-user: anna", format!("x-proxy-secret: {SHARED_SECRET}"));
    for wrong in ["", "x-proxy-secret: ", "x-proxy-secret: wrong-horse-battery", "x-proxy: 1"] {
        let mut lines = vec![origin.as_str(), anna];
        lines.extend(Some(wrong).filter(|it| !it.is_empty()));
        assert_eq!(enter(port, &lines).0, 401, "{wrong:?}");
    }
    for twice in [
        [origin.as_str(), anna, "remote-user: vera", &good],
        [&origin, anna, anna, &good],
        [&origin, anna, "x-proxy-secret: x", &good],
        [&origin, anna, &good, &good],
    ] {
        assert_eq!(enter(port, &twice).0, 400, "{twice:?}");
    }
    assert_eq!(enter(port, &[anna, &good]).0, 403, "a request without an origin is no page's");
    assert_eq!(enter(port, &["origin: http://evil.test", anna, &good]).0, 403);
    assert_eq!(enter(port, &[&origin, &good]).0, 401, "no name");
    assert_eq!(enter(port, &[&origin, "remote-user: mallory", &good]).0, 403, "no role");
    assert_eq!(enter(port, &[&origin, "remote-user: *", &good]).0, 401, "no name");
    let (status, session) = enter(port, &[&origin, anna, &good]);
    assert_eq!(
        (status, &session["name"], &session["role"]),
        (200, &"anna".into(), &"admin".into())
    );
    // The session is good only while the proxy names the same person.
    let bearer = format!("authorization: Bearer {}", session["secret"].as_str().unwrap());
    let host = format!("host: 127.0.0.1:{port}");
    let with = |more: &[&str]| {
        ask(port, "GET", "/api/daemon", &[lines(&[&host, &bearer]), lines(more)].concat()).0
    };
    assert_eq!(with(&[]), 401);
    assert_eq!(with(&[anna]), 401);
    assert_eq!(with(&["remote-user: vera", &good]), 401);
    assert_eq!(with(&[anna, anna, &good]), 400);
    assert!(![401, 403, 404].contains(&with(&[anna, &good])));
    // Without a proxy in the config no header names a person.
    let plain = serve();
    let origin = format!("origin: http://127.0.0.1:{}", plain.port);
    assert_eq!(enter(plain.port, &[&origin, anna, &good]).0, 401);
}

#[test]
fn every_route_needs_the_role_that_it_is_listed_with() {
    let Served { port, .. } = serve_behind_a_proxy();
    let origin = format!("origin: http://127.0.0.1:{port}");
    let good = format!("x-proxy-secret: {SHARED_SECRET}");
    let mut least = std::collections::BTreeMap::new();
    for name in ["anna", "otto", "vera"] {
        let named = format!("remote-user: {name}");
        let (_, session) = enter(port, &[&origin, &named, &good]);
        let bearer = format!("authorization: Bearer {}", session["secret"].as_str().unwrap());
        let host = format!("host: 127.0.0.1:{port}");
        let headers = lines(&[&host, &bearer, &named, &good, "content-type: application/json"]);
        for (method, path) in routes().filter(|(_, path)| path.starts_with("/api/")) {
            let is_apart =
                path == EXCHANGE || path.starts_with(TERMINALS) || path.starts_with(SHARED);
            if is_apart || path == "/api/session/end" {
                continue;
            }
            let (status, answer) = ask(port, &method, &path, &headers);
            assert!(![401, 404, 415, 421].contains(&status), "{name} {method} {path}: {answer}");
            if status != 403 {
                least.insert(format!("{method} {path}"), name);
            }
        }
    }
    let of =
        |name| least.iter().filter(|it| *it.1 == name).map(|it| it.0.as_str()).collect::<Vec<_>>();
    assert_eq!(of("anna"), ["POST /api/runs", "POST /api/runs/k3mx7q9w2r5t/raise"]);
    assert!(of("vera").iter().all(|it| it.starts_with("GET ")), "{:?}", of("vera"));
    let operates = of("otto");
    assert!(operates.contains(&"POST /api/ticket"), "{operates:?}");
    let verbs: Vec<&str> = operates.iter().map(|it| it.rsplit('/').next().unwrap()).collect();
    let expected = ["pause", "resume", "answer", "messages", "pause", "resume", "stop", "enable"];
    let expected = [&expected[..], &["test", "ticket", "pause", "resume", "run"]].concat();
    assert_eq!(verbs, expected, "{operates:?}");
}

#[test]
fn a_code_is_exchanged_once_and_by_our_own_page_only() {
    let Served { port, web } = serve();
    let code = web.link().unwrap().here.rsplit('=').next().unwrap().to_owned();
    let exchange = |more: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let body = format!("{{\"code\":\"{code}\"}}");
        let head = format!(
            "POST {EXCHANGE} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\ncontent-length: {}\r\n{more}\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let json = "content-type: application/json\r\n";
    assert!(exchange(&format!("{json}origin: http://evil.test\r\n")).starts_with("HTTP/1.1 403"));
    assert!(exchange(&format!("{json}sec-fetch-site: cross-site\r\n")).starts_with("HTTP/1.1 403"));
    assert!(exchange("content-type: text/plain\r\n").starts_with("HTTP/1.1 415"));
    let own = format!("{json}origin: http://127.0.0.1:{port}\r\nsec-fetch-site: same-origin\r\n");
    let entered = exchange(&own);
    assert!(entered.starts_with("HTTP/1.1 200"), "none of these used the code up: {entered}");
    assert!(!entered.to_lowercase().contains("set-cookie"));
    assert!(exchange(&own).starts_with("HTTP/1.1 401"), "once");
}

#[test]
fn every_answer_carries_the_headers_and_none_lets_another_origin_read() {
    let Served { port, .. } = serve();
    let host = format!("host: [::1]:{port}");
    for (method, path) in routes().chain([("GET".to_owned(), "/nothing".to_owned())]) {
        for headers in [lines(&[&host]), lines(&["host: evil.test"])] {
            let (_, answer) = ask(port, &method, &path, &headers);
            let head = answer.split("\r\n\r\n").next().unwrap_or_default().to_lowercase();
            let is_tap = path.starts_with("/a/");
            for needed in [
                if is_tap {
                    "content-security-policy: default-src 'none'; style-src 'self';"
                } else {
                    "content-security-policy: default-src 'none'; script-src 'self';"
                },
                "require-trusted-types-for 'script'; trusted-types 'none'",
                "frame-ancestors 'none'",
                if is_tap {
                    "referrer-policy: strict-origin"
                } else {
                    "referrer-policy: no-referrer"
                },
                "x-content-type-options: nosniff",
                "cross-origin-resource-policy: same-origin",
                "cross-origin-opener-policy: same-origin",
            ] {
                assert!(head.contains(needed), "{method} {path}: {needed}\n{head}");
            }
            for banned in ["access-control-", "set-cookie", "unsafe-"] {
                assert!(!head.contains(banned), "{method} {path}: {banned}\n{head}");
            }
            let is_api = path.starts_with("/api");
            assert_eq!(head.contains("cache-control: no-store"), is_api || !head.contains("etag"));
        }
    }
}

#[test]
fn a_terminal_needs_an_origin_of_ours_and_a_ticket_that_is_new() {
    let Served { port, web } = serve();
    let secret = web.exchange(web.link().unwrap().here.rsplit('=').next().unwrap()).unwrap();
    let own = format!("origin: http://127.0.0.1:{port}");
    let host = format!("host: 127.0.0.1:{port}");
    let path = format!("{TERMINALS}k3mx7q9w2r5t");
    let socket = ["upgrade: websocket", "sec-websocket-version: 13"];
    let socket = [&socket[..], &["sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="]].concat();
    let open = |path: &str, more: &[String]| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut head = format!("GET {path} HTTP/1.1\r\n{host}\r\nconnection: upgrade\r\n");
        let all = socket.iter().map(|it| (*it).to_owned()).chain(more.iter().cloned());
        all.for_each(|line| head.push_str(&format!("{line}\r\n")));
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    let ticket = |run: &str| web.ticket(&secret, run, false, &Caller::owner()).unwrap();
    let with = |ticket: &str| format!("sec-websocket-protocol: outlast-tty, ticket.{ticket}");
    let good = ticket("k3mx7q9w2r5t");
    let bearer = format!("authorization: Bearer {secret}");
    assert_eq!(open(&path, &[with(&good)]), "403", "no origin");
    for foreign in ["http://evil.test".to_owned(), format!("http://127.0.0.1:{}", port ^ 1)] {
        assert_eq!(open(&path, &[format!("origin: {foreign}"), with(&good)]), "403");
    }
    assert_eq!(open(&path, &[own.clone(), bearer.clone()]), "401", "the secret is no ticket");
    assert_eq!(open(&path, &[own.clone(), with(&secret)]), "401");
    let in_address = format!("{path}?ticket={good}");
    assert_eq!(open(&in_address, std::slice::from_ref(&own)), "401", "nor is an address");
    assert_eq!(open(&path, &[own.clone(), with(&ticket("x7q"))]), "401", "another run's");
    assert_eq!(open(&path, &[own.clone(), with(&good)]), "101", "none of these used it up");
    assert_eq!(open(&path, &[own.clone(), with(&good)]), "401", "once");
    let late = ticket("k3mx7q9w2r5t");
    web.end(&secret);
    assert_eq!(open(&path, &[own, with(&late)]), "401", "its session is over");
}
