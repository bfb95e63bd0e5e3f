//! Keeps Pingora from reading the system's authorities at each start.
//!
//! Its connectors each build a TLS context with them when they are made, some hundred certificates read
//! five times over, 0.3 s of CPU. None of those contexts ever meets a backend here: TLS toward backends
//! has contexts of its own (see `tls`). So they are given a certificate that nobody knows the key of.

use std::io::Write;

use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::{X509, X509NameBuilder};
use pingora::connectors::ConnectorOptions;
use tempfile::NamedTempFile;

/// Options for Pingora's connectors, and the file that must exist until they are made.
pub struct Throwaway {
    /// With a pool of the size that was asked for.
    pub options: ConnectorOptions,
    _file: Option<NamedTempFile>,
}

impl Throwaway {
    /// Options with a pool of `max_idle` connections. Where no file can be written the system's
    /// authorities are read after all.
    pub fn new(max_idle: usize) -> Self {
        let mut options = ConnectorOptions::new(max_idle);
        let file = write().inspect_err(|error| log::debug!("the start takes longer: {error}")).ok();
        options.ca_file = file.as_ref().and_then(|file| Some(file.path().to_str()?.to_owned()));
        Self { options, _file: file }
    }
}

fn write() -> std::io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    file.write_all(&certificate()?.to_pem()?)?;
    Ok(file)
}

fn certificate() -> Result<X509, ErrorStack> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let key = PKey::from_ec_key(EcKey::generate(&group)?)?;
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_text("CN", "streamgate trusts nobody here")?;
    let name = name.build();
    let (from, until) = (Asn1Time::days_from_now(0)?, Asn1Time::days_from_now(1)?);
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_subject_name(&name)?;
    builder.set_issuer_name(&name)?;
    builder.set_pubkey(&key)?;
    builder.set_not_before(&from)?;
    builder.set_not_after(&until)?;
    builder.sign(&key, MessageDigest::sha256())?;
    Ok(builder.build())
}
