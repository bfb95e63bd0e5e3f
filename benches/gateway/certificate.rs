//! The certificate of all proxies: one that vouches for itself, with a P-256 key, as most servers have.

use std::path::Path;

use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::{X509, X509NameBuilder};

use crate::error::Error;

/// Writes `server.crt` and `server.key` into `dir`, and both in one as `server.pem`, as HAProxy wants them.
pub(crate) fn write(dir: &Path) -> Result<(), Error> {
    let failed = |error| Error::io("make a certificate", error);
    let (certificate, key) = make().map_err(|error| failed(std::io::Error::other(error)))?;
    std::fs::write(dir.join("server.pem"), [&*certificate, &*key].concat()).map_err(failed)?;
    std::fs::write(dir.join("server.crt"), certificate).map_err(failed)?;
    std::fs::write(dir.join("server.key"), key).map_err(failed)
}

/// Both in PEM.
fn make() -> Result<(Vec<u8>, Vec<u8>), ErrorStack> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let key = PKey::from_ec_key(EcKey::generate(&group)?)?;
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_text("CN", "bench")?;
    let name = name.build();
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_subject_name(&name)?;
    builder.set_issuer_name(&name)?;
    builder.set_pubkey(&key)?;
    builder.set_not_before(&*Asn1Time::days_from_now(0)?)?;
    builder.set_not_after(&*Asn1Time::days_from_now(9)?)?;
    builder.sign(&key, MessageDigest::sha256())?;
    Ok((builder.build().to_pem()?, key.private_key_to_pem_pkcs8()?))
}
