//! What operators are told of the certificates of listeners: that one has been renewed, that one ends soon, and what
//! `check` finds wrong beside the text of the file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support;
use crate::support::certificates::Identity;
use crate::support::gateway::{config_file, output};
use crate::support::tls::Pair;
use crate::support::{Gateway, Settings, one_engine};
use serde_json::json;

/// A gateway with this certificate.
async fn showing(pair: &Pair) -> Gateway {
    let tls = json!({ "certificates": [pair.named()] });
    one_engine(|settings| settings.set("server.listen.0.tls", tls)).await.0
}

fn made(dir: &Path, names: &[&str], since: u32, days: i32) -> (Pair, i64) {
    let identity = Identity::for_days(names, since, days);
    let not_after = identity.not_after();
    (Pair::of(identity, dir, names[0]), not_after)
}

/// A reload says which certificate is another one, and until when it is good; the metric follows.
#[tokio::test]
async fn a_renewed_certificate_is_told() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (pair, until) = made(dir.path(), &["llm.test", "other.test"], 1, 90);
    let gateway = showing(&pair).await;
    let file = pair.cert.to_str().expect("UTF-8");
    let expiry = async |until: i64| {
        gateway.wait_metric("tls_certificate_expiry_seconds", &[("file", file)], until as f64).await;
    };
    expiry(until).await;
    assert_eq!(gateway.admin_post("/reload").await.json()["result"], "unchanged");
    assert!(!gateway.log().contains("another certificate"), "{}", gateway.log());

    let (_, until) = made(dir.path(), &["llm.test", "other.test"], 0, 91);
    gateway.signal("HUP");
    gateway.wait_log("has another certificate now for llm.test, other.test, good until 20").await;
    expiry(until).await;
    assert!(!gateway.log().contains("is good"), "nothing ends soon: {}", gateway.log());

    // What is good no more is taken all the same, and told.
    made(dir.path(), &["llm.test"], 90, -1);
    gateway.signal("HUP");
    gateway.wait_log("for llm.test is good no more since 20").await;
}

/// One that ends within two weeks is told at the start and by check; one with a short life when a third is left.
#[tokio::test]
async fn a_certificate_that_ends_soon_is_warned_of() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (since, days, words) in [
        (76, 13, Some(" only, for 1")),
        (90, -1, Some(" is good no more since 20")),
        (5, 1, Some(" only, for ")),
        (75, 15, None),
        (3, 3, None),
    ] {
        let (pair, _) = made(dir.path(), &["llm.test"], since, days);
        let gateway = showing(&pair).await;
        let (code, said) = output(&["check", "-c", gateway.file().to_str().expect("UTF-8")], &[]);
        assert_eq!(code, Some(0), "{said}");
        match words {
            Some(words) => {
                let place = "streamgate.yaml:1: server.listen[0].tls.certificates[0]: the certificate in ";
                assert!(said.contains("warning: ") && said.contains(place) && said.contains(words), "{said}");
                gateway.wait_log(words).await;
            }
            None => {
                assert!(!said.contains("warning"), "{said}");
                assert!(!gateway.log().contains("certificate"), "{}", gateway.log());
            }
        }
    }
}

/// Check finds everything that the start would: of each listener, and of the access log, with its line.
#[test]
fn check_looks_at_what_the_file_names() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let pair = Pair::make(dir.path(), &["llm.test"]);
    let gone = json!({ "cert": dir.path().join("gone.crt"), "key": pair.key });
    let other = Pair::make(dir.path(), &["other.test"]);
    let mixed = json!({ "cert": pair.cert, "key": other.key });
    let listen = |certificate| json!({ "address": "127.0.0.1:0", "tls": { "certificates": [certificate] } });
    let settings = Settings::new(&["127.0.0.1:1".parse().expect("an address")]);
    let text = |log: &Path| {
        let listeners = json!([listen(gone.clone()), listen(pair.named()), listen(mixed.clone())]);
        settings.clone().set("server.listen", listeners).text(log)
    };
    let (_dir, file) = config_file(&text(Path::new("/nowhere/access.log")));
    let (code, said) = output(&["check", "-c", file.to_str().expect("UTF-8")], &[]);
    assert_eq!(code, Some(64), "{said}");
    let name = file.display();
    for words in [
        format!("{name}:1: server.listen[0].tls.certificates[0]: "),
        format!("{name}:1: server.listen[2].tls.certificates[0]: the key "),
        format!("{name}:1: log.access: the access log /nowhere/access.log cannot be opened: No such file"),
    ] {
        assert!(said.contains(&words), "{words}: {said}");
    }
    assert!(!said.contains("listen[1]"), "{said}");
}

/// Where the access log could go is found out without making it.
#[test]
fn check_opens_no_access_log() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (closed, log) = (dir.path().join("closed"), dir.path().join("access.log"));
    fs::create_dir(&closed).expect("a folder");
    let settings = Settings::new(&["127.0.0.1:1".parse().expect("an address")]);
    let check = |log: &Path| {
        let (_dir, file) = config_file(&settings.clone().text(log));
        output(&["check", "-c", file.to_str().expect("UTF-8")], &[])
    };
    assert_eq!(check(&log).0, Some(0));
    assert!(!log.exists(), "nothing is made");
    let (code, said) = check(&closed);
    assert_eq!((code, said.contains("cannot be opened: is a directory")), (Some(75), true), "{said}");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("chmod");
    // Whoever may do everything may write there.
    if rustix::process::geteuid().is_root() {
        return support::not_run("check_opens_no_access_log", "root may write everywhere");
    }
    let (code, said) = check(&closed.join("access.log"));
    assert_eq!((code, said.contains("ermission denied")), (Some(75), true), "{said}");
}
