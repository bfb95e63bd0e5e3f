//! Where limits are kept.
//!
//! The one hard idea: a password is renewed and an authority is replaced while gateways run. So a file is known by its
//! path, and what is in it is read anew for each connection.

use std::fmt;
use std::path::{Path, PathBuf};

use super::file::{read_named, text_of};
use super::tls::{Authorities, ServerName, Trust};
use crate::secret::Secret;

/// Where limits are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Store {
    /// In this process.
    #[default]
    Memory,
    /// On a Redis or Valkey, shared by all gateways that name it.
    Redis(Redis),
}

/// Where a Redis is, who it must be, and who we are there. Written out it is host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redis {
    /// A name or an address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Number of the database.
    pub database: i64,
    /// A user of its ACL; `None` = the default one.
    pub user: Option<String>,
    /// The user's password.
    pub password: Password,
    /// Whom its certificate must be for; `None` = no TLS.
    pub tls: Option<ServerName>,
    /// A file of authorities that may vouch for it, in PEM form; `None` = those that the system trusts.
    pub ca: Option<PathBuf>,
}

/// Where a password comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Password {
    /// There is none.
    None,
    /// The environment, or a variable in the URL.
    Given(Secret),
    /// A file.
    File(PathBuf),
}

impl fmt::Display for Redis {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        if host.contains(':') { write!(to, "[{host}]:{port}") } else { write!(to, "{host}:{port}") }
    }
}

impl Redis {
    /// Who may vouch for it, read from its file now.
    ///
    /// # Errors
    /// Why the file cannot be used.
    pub fn trust(&self) -> Result<Trust, String> {
        let Some(path) = &self.ca else { return Ok(Trust::System) };
        let read = read_named(path).and_then(|pem| Authorities::from_pem(&pem).map_err(str::to_owned));
        read.map(Trust::Authorities).map_err(|why| told(path, &why))
    }
}

impl Password {
    /// The password, read from its file now.
    ///
    /// # Errors
    /// Why the file cannot be used; says nothing of what is in it.
    pub fn read(&self) -> Result<Option<Secret>, String> {
        let path = match self {
            Self::None => return Ok(None),
            Self::Given(secret) => return Ok(Some(secret.clone())),
            Self::File(path) => path,
        };
        let text = read_named(path).and_then(text_of);
        let secret =
            text.and_then(|text| Secret::header(&text).map_err(|bad| format!("holds no password: {bad}")));
        secret.map(Some).map_err(|why| told(path, &why))
    }
}

fn told(path: &Path, why: &str) -> String {
    format!("the file {} {why}", path.display())
}
