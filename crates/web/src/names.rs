//! The names that this process answers to, compared letter by letter.

use axum::extract::Request;
use axum::http::header::{HOST, HeaderMap, HeaderName, ORIGIN};

/// How the page is reached.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
    /// On another address than loopback, where only its public name counts.
    pub(crate) is_remote: bool,
    pub(crate) public_url: Option<String>,
}

impl Door {
    /// The page on this machine.
    pub(crate) fn here(&self) -> String {
        match &self.public_url {
            Some(url) if self.is_remote => url.clone(),
            _ => {
                format!("{}://127.0.0.1:{}", if self.is_tls { "https" } else { "http" }, self.port)
            }
        }
    }
}

/// The names that this process answers to, and the origins of its own page.
#[derive(Debug)]
pub(crate) struct Names {
    authorities: Vec<String>,
    origins: Vec<String>,
}

impl Names {
    /// Those of loopback if the page is there, and what the operator says that it is reached by.
    pub(crate) fn new(door: &Door) -> Self {
        let scheme = if door.is_tls { "https" } else { "http" };
        let hosts: &[&str] =
            if door.is_remote { &[] } else { &["127.0.0.1", "localhost", "[::1]"] };
        let mut authorities: Vec<String> =
            hosts.iter().map(|host| format!("{host}:{}", door.port)).collect();
        let mut origins: Vec<String> =
            authorities.iter().map(|it| format!("{scheme}://{it}")).collect();
        let public_url = door.public_url.as_deref();
        if let Some((url, authority)) = public_url.and_then(|url| Some((url, authority(url)?))) {
            authorities.push(authority.to_owned());
            origins.push(url.to_owned());
        }
        Self { authorities, origins }
    }

    /// Exactly one `Host`, exactly one of ours; a target that names a host names the same.
    pub(crate) fn is_for_us(&self, request: &Request) -> bool {
        let Some(host) = only(request.headers(), &HOST) else { return false };
        let target = request.uri().authority().map(axum::http::uri::Authority::as_str);
        self.authorities.iter().any(|ours| ours == host) && target.is_none_or(|it| it == host)
    }

    pub(crate) fn is_from_us(&self, headers: &HeaderMap) -> bool {
        if !headers.contains_key(ORIGIN) {
            return true;
        }
        only(headers, &ORIGIN).is_some_and(|origin| self.origins.iter().any(|ours| ours == origin))
    }
}

/// The name and port of an address that has nothing else: `https://NAME[:PORT]`, in small letters.
pub(crate) fn authority(url: &str) -> Option<&str> {
    let authority = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let is_fit = |byte: u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'.' | b'-' | b':' | b'[' | b']')
    };
    (!authority.is_empty() && authority.bytes().all(is_fit)).then_some(authority)
}

/// The value of a header that comes once, as text.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::authority;

    #[test]
    fn a_public_address_is_a_name_and_a_port() {
        assert_eq!(authority("https://box.example.org"), Some("box.example.org"));
        assert_eq!(authority("https://box:8443"), Some("box:8443"));
        for wrong in
            ["box", "https://", "https://box/path", "https://a@box", "ftp://box", "https://Box"]
        {
            assert_eq!(authority(wrong), None, "{wrong}");
        }
    }
}
