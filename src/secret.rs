//! A credential that cannot be printed.
//!
//! It is kept as the header value it will be sent as: marked sensitive, so that a head that holds it
//! does not print it either. It is not wiped from memory when dropped: each request that was sent with
//! it has left copies in buffers of libraries that wipe nothing, and a promise half kept is none.

use std::fmt;

use http::HeaderValue;

/// Longest credential in bytes; a header line has to hold it.
const BYTES_MAX: usize = 8 * 1024;

/// A credential of the gateway's own.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(HeaderValue);

/// Why a text is no credential. Says nothing of the text itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// Nothing.
    #[error("it is empty")]
    Empty,
    /// More than 8 KiB.
    #[error("it is longer than 8 KiB")]
    TooLong,
    /// A line end, a tab, NUL and their like.
    #[error("it holds a control character, such as a line end")]
    Control,
    /// What could not be sent in a header.
    #[error("it holds characters outside ASCII")]
    NotAscii,
    /// A blank, which a bearer token cannot have (RFC 6750, 2.1), or one at either end.
    #[error("it holds a blank")]
    Blank,
}

impl Secret {
    /// The value of a header.
    ///
    /// # Errors
    /// The text cannot be one, or has blanks around it.
    pub fn header(text: &str) -> Result<Self, BadSecret> {
        check(text)?;
        if text.trim() != text {
            return Err(BadSecret::Blank);
        }
        Self::sensitive(text)
    }

    /// The value of `Authorization` for a bearer token.
    ///
    /// # Errors
    /// The text is no token.
    pub fn bearer(token: &str) -> Result<Self, BadSecret> {
        check(token)?;
        if token.contains(' ') {
            return Err(BadSecret::Blank);
        }
        Self::sensitive(&format!("Bearer {token}"))
    }

    fn sensitive(text: &str) -> Result<Self, BadSecret> {
        let mut value = HeaderValue::from_str(text).map_err(|_| BadSecret::Control)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// To be sent.
    pub fn header_value(&self) -> &HeaderValue {
        &self.0
    }
}

fn check(text: &str) -> Result<(), BadSecret> {
    if text.is_empty() {
        Err(BadSecret::Empty)
    } else if text.len() > BYTES_MAX {
        Err(BadSecret::TooLong)
    } else if text.chars().any(char::is_control) {
        Err(BadSecret::Control)
    } else if !text.is_ascii() {
        Err(BadSecret::NotAscii)
    } else {
        Ok(())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Secret")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_sent_and_never_printed() {
        let secret = Secret::bearer("canary-1").unwrap();
        assert_eq!(secret.header_value(), "Bearer canary-1");
        let map = http::HeaderMap::from_iter([(http::header::AUTHORIZATION, secret.header_value().clone())]);
        assert!(!format!("{secret} {secret:?} {:?} {map:?}", Some(&secret)).contains("canary"));
    }

    #[test]
    fn what_is_no_credential_is_told_without_itself() {
        let told = |text: &str| Secret::header(text).unwrap_err();
        assert_eq!(told(""), BadSecret::Empty);
        assert_eq!(told(&"x".repeat(8193)), BadSecret::TooLong);
        assert_eq!(
            (told("a\nb"), told("a\0"), told("a\u{85}")),
            (BadSecret::Control, BadSecret::Control, BadSecret::Control)
        );
        assert_eq!(told("schl\u{fc}ssel"), BadSecret::NotAscii);
        assert_eq!((told(" a"), told("a ")), (BadSecret::Blank, BadSecret::Blank));
        assert_eq!(Secret::bearer("a b").unwrap_err(), BadSecret::Blank);
        assert_eq!(Secret::header("Key a b").unwrap().header_value(), "Key a b");
    }
}
