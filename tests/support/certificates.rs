//! Authorities and certificates, made anew for each test: the one place that makes them.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Builder, X509Name, X509NameBuilder};
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An authority, and the file of its certificate.
pub(crate) struct Authority {
    key: PKey<Private>,
    certificate: X509,
    dir: TempDir,
}

/// What a server shows and proves itself with.
pub(crate) struct Identity {
    pub(crate) key: PKey<Private>,
    pub(crate) certificate: X509,
}

impl Authority {
    /// A new one.
    pub(crate) fn new() -> Self {
        let key = key();
        let name = name("test authority");
        let mut builder = builder(&name, &name, &key, whole());
        builder
            .append_extension(BasicConstraints::new().critical().ca().build().expect("a constraint"))
            .expect("append");
        builder.sign(&key, MessageDigest::sha256()).expect("sign");
        let (certificate, dir) = (builder.build(), tempfile::tempdir().expect("temporary directory"));
        let made = Self { key, certificate, dir };
        std::fs::write(made.file(), made.pem()).expect("write");
        made
    }

    /// The file of its certificate.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// Its certificate.
    pub(crate) fn pem(&self) -> String {
        String::from_utf8(self.certificate.to_pem().expect("PEM")).expect("ASCII")
    }

    /// A server with these names and addresses.
    pub(crate) fn vouches_for(&self, names: &[&str]) -> Identity {
        self.vouched(names, whole())
    }

    /// The same with a certificate whose time is over.
    pub(crate) fn vouched_for(&self, names: &[&str]) -> Identity {
        let now = SystemTime::now();
        self.vouched(names, (now - 9 * DAY, now - 2 * DAY))
    }

    fn vouched(&self, names: &[&str], time: (SystemTime, SystemTime)) -> Identity {
        identity(names, time, Some((&self.certificate, &self.key)))
    }
}

impl Identity {
    /// One that vouches for itself.
    pub(crate) fn of_its_own(names: &[&str]) -> Self {
        identity(names, whole(), None)
    }

    /// The same, good since and for so many days; less than 0 is over.
    pub(crate) fn for_days(names: &[&str], since: u32, days: i32) -> Self {
        let now = SystemTime::now();
        let span = days.unsigned_abs() * DAY;
        identity(names, (now - since * DAY, if days < 0 { now - span } else { now + span }), None)
    }

    /// The last second at which it is good, since 1970.
    pub(crate) fn not_after(&self) -> i64 {
        let since =
            Asn1Time::from_unix(0).expect("a time").diff(self.certificate.not_after()).expect("a span");
        i64::from(since.days) * 86_400 + i64::from(since.secs)
    }
}

/// A server with these names and addresses, vouched for by `issuer` or by itself.
fn identity(
    names: &[&str],
    time: (SystemTime, SystemTime),
    issuer: Option<(&X509, &PKey<Private>)>,
) -> Identity {
    let (key, subject) = (key(), name("test server"));
    let by = issuer.map_or(&*subject, |(certificate, _)| certificate.subject_name());
    let mut builder = builder(&subject, by, &key, time);
    let mut alternatives = SubjectAlternativeName::new();
    for name in names {
        match name.parse::<IpAddr>() {
            Ok(_) => alternatives.ip(name),
            Err(_) => alternatives.dns(name),
        };
    }
    let issuer_certificate = issuer.map(|(certificate, _)| &**certificate);
    let alternatives = alternatives.build(&builder.x509v3_context(issuer_certificate, None)).expect("names");
    builder.append_extension(alternatives).expect("append");
    builder.sign(issuer.map_or(&key, |(_, key)| key), MessageDigest::sha256()).expect("sign");
    Identity { key, certificate: builder.build() }
}

fn whole() -> (SystemTime, SystemTime) {
    let now = SystemTime::now();
    (now - DAY, now + 9 * DAY)
}

fn key() -> PKey<Private> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).expect("P-256");
    PKey::from_ec_key(EcKey::generate(&group).expect("a key")).expect("a key")
}

fn name(common: &str) -> X509Name {
    let mut name = X509NameBuilder::new().expect("a name");
    name.append_entry_by_text("CN", common).expect("a name");
    name.build()
}

fn builder(
    subject: &X509Name,
    issuer: &openssl::x509::X509NameRef,
    key: &PKey<Private>,
    (from, until): (SystemTime, SystemTime),
) -> X509Builder {
    let at = |time: SystemTime| {
        let seconds = time.duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        Asn1Time::from_unix(i64::try_from(seconds).expect("before the end of time")).expect("a time")
    };
    let mut serial = BigNum::new().expect("a number");
    serial.rand(64, openssl::bn::MsbOption::MAYBE_ZERO, false).expect("a number");
    let mut builder = X509::builder().expect("a builder");
    builder.set_version(2).expect("version 3");
    builder.set_serial_number(&serial.to_asn1_integer().expect("a number")).expect("serial");
    builder.set_subject_name(subject).expect("subject");
    builder.set_issuer_name(issuer).expect("issuer");
    builder.set_pubkey(key).expect("key");
    builder.set_not_before(&at(from)).expect("from");
    builder.set_not_after(&at(until)).expect("until");
    builder
}
