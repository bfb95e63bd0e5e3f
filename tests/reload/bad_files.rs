//! Files that cannot be taken: each is refused with its place and reason, and what runs goes on. Row R2, case H22.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support;
use crate::support::wait::{SOON, wait_until_async};
use crate::support::wire::event;
use crate::support::{Gateway, Settings, checks, streaming};

/// Resident memory that refusing files may add, in KiB.
const GROWTH_MAX: u64 = 64 * 1024;

/// The broken files of the configuration's own tests, and a sound one cut off at many places.
fn bad_texts() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config");
    let yaml =
        fs::read_dir(folder.join("invalid")).expect("the folder").map(|entry| entry.expect("a file").path());
    let mut texts: Vec<(String, Vec<u8>)> = yaml
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .map(|path| (path.display().to_string(), fs::read(path).expect("read")))
        .collect();
    assert!(texts.len() > 50, "only {} broken files", texts.len());
    let full = fs::read(folder.join("valid/full.yaml")).expect("read");
    let step = full.len() / (220 - texts.len());
    texts.extend((0..full.len()).step_by(step).map(|end| (format!("cut at {end}"), full[..end].to_vec())));
    let odd: [(&str, Vec<u8>); 5] = [
        ("a tab", b"server:\n\tlisten: []\n".to_vec()),
        ("a negative timeout", b"timeouts: { idle: -5s }\n".to_vec()),
        ("deep", b"[".repeat(100_000)),
        ("NUL", b"server: \0\n".to_vec()),
        ("32 MiB and more", vec![b'#'; (32 << 20) + 1]),
    ];
    texts.extend(odd.map(|(name, text)| (name.to_owned(), text)));
    texts
}

async fn refused(gateway: &Gateway, name: &str) {
    let answer = gateway.admin_post("/reload").await;
    assert_eq!(answer.status(), 422, "{name}: {}", answer.text());
    let problems = answer.json()["problems"].clone();
    let first = problems[0].as_str().expect("a problem");
    assert!(first.starts_with(&format!("{}:", gateway.file().display())), "{name}: {first}");
}

/// The memory that reading took comes back. The allocator gives it to the system little by little, while others ask it
/// for some.
async fn is_given_back(gateway: &Gateway, before: u64) {
    wait_until_async("the memory is given back", 4 * SOON, || async {
        assert_eq!(gateway.admin_get("/livez").await.status(), 200);
        gateway.rss_kb().saturating_sub(before) <= GROWTH_MAX
    })
    .await;
}

/// R2: two hundred files, and not one changes anything, under a stream that does not notice.
#[tokio::test]
async fn r2_two_hundred_bad_files_change_nothing() {
    let (gateway, mut engine) = support::one_engine(|settings| settings.set("timeouts.idle", "28s")).await;
    let (client, mut call) = streaming(&gateway, &mut engine, &["0"]).await;
    let mut sent = event("0");
    let before = gateway.rss_kb();
    let texts = bad_texts();
    assert!(texts.len() >= 200, "only {} files", texts.len());
    for (i, (name, text)) in texts.iter().enumerate() {
        gateway.rewrite_text(text);
        refused(&gateway, name).await;
        if i % 20 == 0 {
            let event = event(&i.to_string());
            call.chunk(&event).await;
            sent.push_str(&event);
        }
    }
    assert_eq!(gateway.metric("config_generation", &[]).await, 1.0);
    assert_eq!(gateway.metric("config_last_reload_successful", &[]).await, 0.0);
    assert!(gateway.reloads("failed").await >= texts.len() as f64);
    assert_eq!(gateway.reloads("applied").await, 0.0);
    is_given_back(&gateway, before).await;
    gateway.wait_log("the configuration is refused, and the one in force stays").await;
    let log = gateway.log();
    assert!(log.contains("streamgate.yaml:2: "), "the log names file and line");
    let shown = gateway.admin_get("/config").await.json();
    assert_eq!(shown["routes"][0]["name"], "chat", "the running one is shown: {shown}");
    checks::ends_same(client, call, sent.as_bytes()).await;
    let sound = Settings::new(&[engine.addr]).set("timeouts.idle", "27s");
    assert_eq!(gateway.reload(sound).await, 2);
    assert_eq!(gateway.metric("config_last_reload_successful", &[]).await, 1.0);
}

/// R2: what is no file that can be read.
#[tokio::test]
async fn r2_what_is_no_file_is_refused() {
    let (gateway, mut engine) = support::one_engine(support::as_is).await;
    let file = gateway.file();
    fs::remove_file(&file).expect("remove");
    refused(&gateway, "gone").await;
    fs::create_dir(&file).expect("create");
    refused(&gateway, "a folder").await;
    fs::remove_dir(&file).expect("remove");
    symlink(&file, &file).expect("link");
    refused(&gateway, "a circle").await;
    fs::remove_file(&file).expect("remove");
    // Opening it would wait for somebody who writes.
    assert!(std::process::Command::new("mkfifo").arg(&file).status().expect("run mkfifo").success());
    refused(&gateway, "a pipe").await;
    fs::remove_file(&file).expect("remove");
    // 100 MB, of which no more is read than a file may have.
    fs::File::create(&file).and_then(|huge| huge.set_len(100 << 20)).expect("create");
    let before = gateway.rss_kb();
    refused(&gateway, "100 MB").await;
    is_given_back(&gateway, before).await;
    let (client, call) = streaming(&gateway, &mut engine, &["1"]).await;
    checks::ends_same(client, call, event("1").as_bytes()).await;
    assert_eq!(gateway.reload(Settings::new(&[engine.addr]).set("clusters.c.keepalive", "3s")).await, 2);
}

/// A name that has no address, and an authority that cannot be read, are found before anything changes.
#[tokio::test]
async fn what_cannot_be_built_is_refused() {
    let (gateway, engine) = support::one_engine(support::as_is).await;
    let settings = Settings::new(&[engine.addr]);
    for (setting, value, told) in [
        (
            "clusters.c.backends.0.url",
            "http://nowhere.invalid:80",
            "\\\"nowhere.invalid\\\" cannot be resolved",
        ),
        ("clusters.c.auth", "canary", "clusters.c.auth: "),
        (
            "clusters.c",
            "nowhere.invalid:80",
            "nowhere.invalid:80 has no address, and the cluster would be left without",
        ),
    ] {
        // A mistyped name is refused where it would leave nothing of a cluster that works.
        let discover = serde_json::json!({ "profile": "openai", "discover": { "dns": value } });
        let value = if setting == "clusters.c" { discover } else { value.into() };
        gateway.rewrite(settings.clone().set(setting, value));
        let answer = gateway.admin_post("/reload").await;
        assert_eq!(answer.status(), 422, "{}", answer.text());
        assert!(answer.text().contains(told), "{}", answer.text());
        assert!(!answer.text().contains("canary") && !gateway.log().contains("canary"));
    }
    assert_eq!(gateway.metric("config_generation", &[]).await, 1.0);
}
