//! Signatures by the examples of those who invented them, names of deliveries, and filters.

use serde_json::json;

use super::*;

/// The example of Standard Webhooks, and one that GitHub's documentation gives.
const STANDARD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn genuine(secret: &str, headers: &[(&str, &str)], body: &[u8], now_s: u64) -> bool {
    let get = |name: &str| {
        headers.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    proof(secret, &get, body, Time(now_s * 1000)).is_some()
}

#[test]
fn a_hub_signature_is_over_the_raw_body() {
    let secret = "It's a Secret to Everybody";
    let good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let signed = |signature: &str, body: &[u8]| {
        genuine(secret, &[("x-hub-signature-256", signature)], body, 0)
    };
    assert!(signed(good, b"Hello, World!"));
    assert!(!signed(good, b"Hello, World! "));
    assert!(!signed(&good.replace("7571", "7572"), b"Hello, World!"));
    for bad in ["", "sha256=", "sha256=zz", "sha1=757107ea", &good[..20]] {
        assert!(!signed(bad, b"Hello, World!"), "{bad}");
    }
    // A token that is right does not make up for a signature that is wrong.
    let bearer = format!("Bearer {secret}");
    let both = [("x-hub-signature-256", "sha256=00"), ("authorization", bearer.as_str())];
    assert!(!genuine(secret, &both, b"Hello, World!", 0));
}

#[test]
fn a_standard_signature_is_over_id_time_and_body() {
    let body = br#"{"test": 2432232314}"#;
    let good = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    let signed = |signature: &str, id: &str, at: &str, now_s: u64| {
        let headers =
            [("webhook-signature", signature), ("webhook-id", id), ("webhook-timestamp", at)];
        genuine(STANDARD, &headers, body, now_s)
    };
    let (id, at, now_s) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", 1_614_265_330);
    assert!(signed(good, id, at, now_s));
    assert!(signed(good, id, at, now_s + 299) && signed(good, id, at, now_s - 299));
    assert!(!signed(good, id, at, now_s + 301) && !signed(good, id, at, now_s - 301));
    assert!(signed(&format!("v1,AAAA v1a,x {good}"), id, at, now_s));
    assert!(!signed(good, "msg_other", at, now_s) && !signed(good, id, "x", now_s));
    assert!(!signed(good, id, "1614265331", now_s) && !signed("v2,AAAA", id, at, now_s));
    assert!(!genuine(STANDARD, &[("webhook-signature", good)], body, now_s));
}

#[test]
fn a_token_is_the_secret_itself() {
    let token = |value: &str| genuine("a good secret", &[("authorization", value)], b"x", 0);
    assert!(token("Bearer a good secret"));
    for bad in ["Bearer a good secre", "Bearer a good secret!", "Bearer ", "a good secret", ""] {
        assert!(!token(bad), "{bad}");
    }
    assert!(!genuine("a good secret", &[], b"x", 0));
}

#[test]
fn a_delivery_is_called_what_its_sender_says_or_what_it_is() {
    let id = |header: Option<&str>, headers: &[(&str, &str)]| {
        let get = |name: &str| {
            headers.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        delivery_id(header, &get, b"body")
    };
    assert_eq!(id(None, &[("x-github-delivery", "72d3")]), "72d3");
    assert_eq!(id(None, &[("webhook-id", "msg_1"), ("x-github-delivery", "7")]), "msg_1");
    assert_eq!(id(Some("X-Event-Id"), &[("x-event-id", "e1"), ("webhook-id", "m")]), "e1");
    let by_content = "230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5";
    assert_eq!(id(None, &[]), by_content);
    assert_eq!(id(Some("X-Event-Id"), &[("x-event-id", " ")]), by_content);
    assert_eq!(id(None, &[("webhook-id", "with a space")]).len(), 64);
    assert_eq!(id(None, &[("webhook-id", &"x".repeat(300))]).len(), 64);
}

#[test]
fn filters_look_at_the_body() {
    let body = json!({ "action": "opened", "issue": { "number": 7, "labels": ["a"] }, "n": null });
    let holds = |text: &str| Condition::parse(text).expect("a filter").holds(&body);
    for good in [
        "/action=opened",
        "/action!=closed",
        "/issue/number=7",
        "/action~^open",
        "/issue",
        "/issue/labels/0=a",
        "/missing!=x",
        "/n=null",
    ] {
        assert!(holds(good), "{good}");
    }
    for bad in ["/action=Opened", "/action!=opened", "/missing", "/missing=x", "/action~^closed$"] {
        assert!(!holds(bad), "{bad}");
    }
    for wrong in ["action=opened", "/a~(", "/a!b", ""] {
        let refusal = Condition::parse(wrong).expect_err("it is wrong");
        assert!(refusal.code == Code::BadFilter && refusal.hint.is_some(), "{wrong}");
    }
}

#[test]
fn a_secret_is_made_in_the_form_that_is_read() {
    let secret = new_secret([7; 32]);
    assert!(check_secret(&secret).is_ok() && secret.len() == 6 + 44);
    assert!(check_secret("whsec_c2hvcnQ=").is_err() && check_secret("short").is_err());
    // One letter beyond whole bytes: our own decoder took it, and no other does.
    assert!(check_secret(&format!("whsec_{}", "A".repeat(25))).is_err());
}
