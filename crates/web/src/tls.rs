//! The certificate of a page that is served to other machines.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_client::problem::Problem;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate and its key, as files.
#[derive(Debug, Clone)]
pub struct Certificate {
    pub chain: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    /// Reads both. A certificate that has run out is the browser's to refuse.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, Problem> {
        let wrong = |path: &Path, why: &dyn std::fmt::Display| {
            let message = format!("{}: {why}", path.display());
            Problem::refusal("bad_certificate", message)
                .hint("web.certificate and web.key in config.toml name PEM files")
        };
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(&self.chain).and_then(Iterator::collect);
        let chain = chain.map_err(|error| wrong(&self.chain, &error))?;
        let key =
            PrivateKeyDer::from_pem_file(&self.key).map_err(|error| wrong(&self.key, &error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&self.chain, &error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| wrong(&self.chain, &error))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
