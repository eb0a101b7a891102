//! A webhook, signed as Standard Webhooks 1.0 has it: who is told can tell that it was us, that nothing was
//! changed on the way, and that it is the same notice if it comes twice.

use std::collections::BTreeMap;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use outlast_engine::Time;
use outlast_workflow::notify::{Secret, base64, signing_key};
use sha2::Sha256;

use super::body::{Content, Telling};
use super::{Outcome, http, target, text};

/// No body is as long: receivers refuse more.
const LARGEST: usize = 20_000;

pub(super) struct To<'a> {
    pub(super) url: &'a Secret,
    pub(super) secrets: &'a [Secret],
    pub(super) headers: &'a BTreeMap<String, Secret>,
}

pub(super) async fn send(to: &To<'_>, telling: &Telling, time: (Time, Duration)) -> Outcome {
    let ((now, within), body) = (time, fitting(telling));
    let (url, headers) = match prepared(to, telling, &body, now) {
        Ok(prepared) => prepared,
        Err(why) => return Outcome::failed(why),
    };
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    http::outcome(http::post(&http::Post { url: &url, headers, body }, within).await, now)
}

type Headers = Vec<(String, String)>;

fn prepared(
    to: &To<'_>,
    telling: &Telling,
    body: &str,
    now: Time,
) -> Result<(String, Headers), String> {
    let url = target::reveal(to.url)?;
    let mut headers: Headers = Vec::new();
    for (name, value) in to.headers {
        headers.push((name.clone(), target::reveal(value)?));
    }
    let seconds = (now.0 / 1000).to_string();
    headers.push(("webhook-id".to_owned(), telling.id.clone()));
    headers.push(("webhook-timestamp".to_owned(), seconds.clone()));
    let keys = to.secrets.iter().map(|secret| signing_key(&target::reveal(secret)?));
    let keys: Vec<Vec<u8>> = keys.collect::<Result<_, String>>()?;
    if !keys.is_empty() {
        let signatures: Vec<String> =
            keys.iter().map(|key| signature(key, &telling.id, &seconds, body)).collect();
        headers.push(("webhook-signature".to_owned(), signatures.join(" ")));
    }
    Ok((url, headers))
}

fn signature(key: &[u8], id: &str, seconds: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a MAC takes a key of any length");
    for part in [id, ".", seconds, ".", body] {
        mac.update(part.as_bytes());
    }
    format!("v1,{}", base64::encode(&mac.finalize().into_bytes()))
}

/// The body, of which the output's end and the summary are cut until it fits.
fn fitting(telling: &Telling) -> String {
    if telling.body.len() < LARGEST {
        return telling.body.clone();
    }
    match &telling.content {
        Content::One(notice) => {
            let mut notice = notice.clone();
            let mut most = LARGEST / 2;
            loop {
                notice.data.output_tail =
                    text::end_of(&notice.data.output_tail, most / 4).to_owned();
                notice.data.summary =
                    notice.data.summary.as_ref().map(|summary| text::clipped(summary, most));
                let body = serde_json::to_string(&notice).expect("a notice is plain data");
                if body.len() < LARGEST || most == 0 {
                    return body;
                }
                most /= 2;
            }
        }
        Content::Many(batch) => {
            let mut batch = batch.clone();
            while serde_json::to_string(&batch).expect("a batch is plain data").len() >= LARGEST
                && !batch.data.ids.is_empty()
            {
                let half = batch.data.ids.len() / 2;
                batch.data.ids.truncate(half);
            }
            serde_json::to_string(&batch).expect("a batch is plain data")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::body::Telling;
    use super::*;

    #[test]
    fn the_example_of_the_specification_has_its_signature() {
        let key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed =
            signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "{\"test\": 2432232314}");
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_long_notice_is_cut_until_it_fits_and_stays_json() {
        let mut telling = Telling::test("id", Time(0));
        let Content::One(notice) = &mut telling.content else { panic!("one") };
        notice.data.summary = Some("\u{1}é".repeat(9000));
        notice.data.output_tail = "tail\n".repeat(400);
        telling.body = serde_json::to_string(notice).unwrap();
        assert!(telling.body.len() > LARGEST);
        let body = fitting(&telling);
        assert!(body.len() < LARGEST, "{}", body.len());
        let read: outlast_wire::api::Notice = serde_json::from_str(&body).unwrap();
        assert!(read.data.output_tail.ends_with("tail\n"));
    }
}
