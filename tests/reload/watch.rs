//! The file changes on disk, in each way that people and tools have of changing it, and nobody says so.
//! Rows R9 to R11; R12 (no events at all) is a test of `reload::watch` itself.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::wait::{ms, silence};
use crate::support::wire::event;
use crate::support::{Gateway, Settings, Upstream, checks, streaming, times};

/// The settings of round `n`: each differs from all others.
fn round(engine: &Upstream, n: u64) -> Settings {
    Settings::new(&[engine.addr]).set("clusters.c.keepalive", format!("{}ms", 2000 + n))
}

async fn start() -> (Gateway, Upstream) {
    let engine = Upstream::start().await;
    let gateway = Gateway::start(round(&engine, 1)).await;
    (gateway, engine)
}

/// Round `n` is in force, brought by `n - 1` changes, each read once.
async fn in_force(gateway: &Gateway, n: u64) {
    crate::support::score::struck(1, "the file changes");
    gateway.wait_metric("config_generation", &[], n as f64).await;
    // Counted behind coming into force.
    gateway.wait_metric("config_reloads_total", &[("result", "applied")], (n - 1) as f64).await;
    assert_eq!(gateway.reloads("failed").await, 0.0, "half a file was read: {}", gateway.log());
}

fn write_whole(file: &Path, text: &str) {
    fs::write(file, text).expect("write");
}

/// R10: editors, `mv`, `cp`, `sed -i`, a file written in pieces: one change each, and none of half a file.
#[tokio::test]
async fn r10_every_way_of_saving_is_one_change() {
    let (gateway, mut engine) = start().await;
    let (client, call) = streaming(&gateway, &mut engine, &["1"]).await;
    let file = gateway.file();
    let aside = file.with_extension("aside");
    let text = |n| gateway.text_of(round(&engine, n));

    // Beside it and renamed: mv, emacs, most tools.
    gateway.rewrite(round(&engine, 2));
    in_force(&gateway, 2).await;
    // The old one renamed away, a new one written in its place: vim with a backup.
    fs::rename(&file, &aside).expect("rename");
    write_whole(&file, &text(3));
    fs::remove_file(&aside).expect("remove");
    in_force(&gateway, 3).await;
    // In place: cp.
    write_whole(&aside, &text(4));
    fs::copy(&aside, &file).expect("copy");
    in_force(&gateway, 4).await;
    // sed -i.
    let sed = Command::new("sed").args(["-i", "s/2004ms/2005ms/"]).arg(&file).status().expect("sed");
    assert!(sed.success());
    in_force(&gateway, 5).await;
    // Truncated, and written in three pieces by somebody who takes longer than the usual silence.
    let whole = text(6);
    let mut writer = OpenOptions::new().write(true).truncate(true).open(&file).expect("open");
    for piece in whole.as_bytes().chunks(whole.len().div_ceil(3)) {
        writer.write_all(piece).expect("write");
        silence(ms(250)).await;
    }
    drop(writer);
    in_force(&gateway, 6).await;
    // Saved twice at once: what counts is the last.
    write_whole(&file, "routes: [\n");
    gateway.rewrite(round(&engine, 7));
    in_force(&gateway, 7).await;
    gateway.wait_log("the file has changed: ").await;
    checks::ends_same(client, call, event("1").as_bytes()).await;
}

/// A file that was only touched, or written as it was, is no change.
#[tokio::test]
async fn what_is_written_as_it_was_is_not_read_again() {
    let (gateway, engine) = start().await;
    let text = gateway.text_of(round(&engine, 1));
    write_whole(&gateway.file(), &text);
    gateway.rewrite_text(&text);
    // A change behind it is seen, and is the only one.
    gateway.rewrite(round(&engine, 2));
    in_force(&gateway, 2).await;
    assert_eq!(gateway.reloads("unchanged").await, 0.0);
}

/// R11: deleted, told once, and back.
#[tokio::test]
async fn r11_a_file_that_is_gone_changes_nothing_until_it_is_back() {
    let (gateway, mut engine) = start().await;
    fs::remove_file(gateway.file()).expect("remove");
    gateway.wait_log("No such file or directory (os error 2); the configuration in force stays").await;
    let (client, call) = streaming(&gateway, &mut engine, &["1"]).await;
    checks::ends_same(client, call, event("1").as_bytes()).await;
    assert_eq!(gateway.admin_post("/reload").await.status(), 422);
    gateway.rewrite(round(&engine, 2));
    gateway.wait_metric("config_generation", &[], 2.0).await;
    gateway.wait_metric("config_last_reload_successful", &[], 1.0).await;
}

/// One version of a mounted ConfigMap: a folder of its own, to which `..data` leads.
fn publish(mount: &Path, n: u64, text: &str) {
    let version = format!("..v{n}");
    fs::create_dir(mount.join(&version)).expect("create");
    write_whole(&mount.join(&version).join("streamgate.yaml"), text);
    symlink(&version, mount.join("..data_tmp")).expect("link");
    fs::rename(mount.join("..data_tmp"), mount.join("..data")).expect("rename");
    if n > 1 {
        fs::remove_dir_all(mount.join(format!("..v{}", n - 1))).expect("remove");
    }
}

/// R9: Kubernetes swaps the link in the middle of the path and removes the old folder; every swap is seen.
#[tokio::test]
async fn r9_every_swap_of_a_mounted_map_is_seen() {
    let swaps = times(30, 100);
    let engine = Upstream::start().await;
    let mount = tempfile::tempdir().expect("temporary directory");
    let text = |n| round(&engine, n).text(Path::new("/dev/null"));
    publish(mount.path(), 1, &text(1));
    let file = mount.path().join("streamgate.yaml");
    symlink("..data/streamgate.yaml", &file).expect("link");
    let gateway = Gateway::start_on(&file).await;
    for n in 2..=swaps {
        publish(mount.path(), n, &text(n));
        in_force(&gateway, n).await;
    }
}

/// A file that is being written all the time is read all the same.
#[tokio::test]
async fn a_restless_folder_keeps_nothing_from_being_seen() {
    let (gateway, engine) = start().await;
    let noise = gateway.file().with_extension("log");
    let writing = async {
        let mut noise = File::create(noise).expect("create");
        loop {
            writeln!(noise, "a line").expect("write");
            silence(ms(20)).await;
        }
    };
    gateway.rewrite(round(&engine, 2));
    tokio::select! {
        () = in_force(&gateway, 2) => {}
        () = writing => {}
    }
}
