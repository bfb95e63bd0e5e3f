//! TLS toward a backend, as plain data: who is trusted, and who the backend must be.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use openssl::x509::X509;

/// TLS toward one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Who may vouch for it.
    pub trust: Trust,
    /// Who it must be.
    pub name: ServerName,
    /// The same for the same trust, never 0.
    pub trust_key: u64,
    /// The same for the same trust and name, never 0: what connections may be shared by.
    pub key: u64,
}

/// Who may vouch for a backend.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The authorities that the system trusts.
    System,
    /// These authorities, and no others.
    Authorities(Authorities),
    /// Nobody is asked: any certificate will do.
    Anyone,
}

/// Certificates of authorities.
#[derive(Clone)]
pub struct Authorities {
    /// The certificates. Never empty.
    pub list: Vec<X509>,
    der: Vec<Vec<u8>>,
}

impl Authorities {
    /// Reads the certificates of a PEM file.
    ///
    /// # Errors
    /// What is wrong with it, as said of the file.
    pub(crate) fn from_pem(pem: &[u8]) -> Result<Self, &'static str> {
        let list =
            X509::stack_from_pem(pem).map_err(|_| "holds something that is no certificate in PEM form")?;
        if list.is_empty() {
            return Err("holds no certificate in PEM form");
        }
        let der = list.iter().map(|one| one.to_der()).collect::<Result<_, _>>();
        Ok(Self { list, der: der.map_err(|_| "holds a certificate that cannot be written out")? })
    }
}

impl PartialEq for Authorities {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for Authorities {}

impl Hash for Authorities {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.der.hash(state);
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Authorities({})", self.list.len())
    }
}

/// The name that a certificate must be for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ServerName {
    /// A host name in lower case; it is also asked for (SNI, RFC 6066, 3).
    Dns(String),
    /// An address, which cannot be asked for.
    Ip(IpAddr),
}

impl fmt::Display for ServerName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => to.write_str(name),
            Self::Ip(ip) => ip.fmt(to),
        }
    }
}
