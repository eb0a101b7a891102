//! The sender of a request, as the connection and its headers say.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::http::request::Parts;
use axum::serve::IncomingStream;
use outlast_wire::api::{TOKEN_HEADER, VIA_HEADER, VIA_MOST};

use super::OwnUser;
use crate::runs::callers::Caller;
use crate::world::peers::Peer;

/// The other end of a connection; `None` if the kernel would not say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connecting(Option<Peer>);

impl Connected<IncomingStream<'_, OwnUser>> for Connecting {
    fn connect_info(stream: IncomingStream<'_, OwnUser>) -> Self {
        Self(Peer::of(stream.io().stream()).ok())
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<Connecting>>();
        let peer = peer.and_then(|ConnectInfo(Connecting(peer))| *peer);
        let token = parts.headers.get(TOKEN_HEADER);
        // One that is no text is a wrong one.
        let token = token.map(|token| token.to_str().unwrap_or_default().to_owned());
        let via = parts.headers.get(VIA_HEADER).and_then(|via| via.to_str().ok());
        let via = via.filter(|via| (1..=VIA_MOST).contains(&via.len())).map(str::to_owned);
        Ok(Self { peer, token, via })
    }
}
