//! The Debian package as far as it is made of files: what is put where, the scripts that dpkg runs, the unit with its
//! other path. `scripts/package.sh` lays it out with the binary of the tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use streamgate::config::Address;

use crate::support::gateway::{BINARY, output};
use crate::support::not_run;
use crate::{read, shipped, sound};

/// What `make deb` makes beside the binary.
fn laid_out() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut script = Command::new(shipped("scripts/package.sh"));
    script
        .arg("deb")
        .env("STREAMGATE_STAGE_ONLY", &*BINARY)
        .env("STREAMGATE_STAGE", dir.path().join("stage"));
    let output = script.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    dir
}

/// The value of `assets`, which is JSON but for its comments and its last comma.
fn assets() -> Vec<(String, String, String)> {
    let manifest = read("Cargo.toml");
    let section = manifest.split("[package.metadata.deb]").nth(1).unwrap();
    let list = section.split("assets = [").nth(1).unwrap().split("\n]").next().unwrap();
    let list = format!("[{}]", list.trim().trim_end_matches(','));
    serde_json::from_str(&list).unwrap()
}

#[test]
fn every_file_of_the_package_is_there() {
    let dir = laid_out();
    let assets = assets();
    for (source, _, _) in &assets {
        // What `scripts/package.sh` has stripped, and not what cargo leaves: that is five times as large.
        if source == "target/package/bin/streamgate" {
            continue;
        }
        let laid = source.strip_prefix("target/package/");
        let path = laid.map_or_else(|| shipped(source), |laid| dir.path().join(laid));
        let folder = path.parent().unwrap();
        let (begin, end) = path.file_name().unwrap().to_str().unwrap().split_once('*').map_or_else(
            || (path.file_name().unwrap().to_str().unwrap().to_owned(), String::new()),
            |(begin, end)| (begin.to_owned(), end.to_owned()),
        );
        let names = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{source}: {error}"));
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(
            names.into_iter().any(|name| name.starts_with(&begin) && name.ends_with(&end)),
            "there is no {source}"
        );
    }
    let placed = |place: &str| assets.iter().any(|(_, target, _)| target.starts_with(place));
    for place in ["usr/bin/", "etc/streamgate/", "lib/systemd/system/", "usr/share/man/man1/"] {
        assert!(placed(place), "nothing goes to {place}");
    }
    let libraries = std::fs::read_to_string(dir.path().join("stage/THIRD-PARTY.txt")).unwrap();
    for text in ["pingora-core 0.9.1: Apache-2.0", "openssl-src", "Permission is hereby granted"] {
        assert!(libraries.contains(text), "{text}");
    }
}

/// The file that a fresh installation starts on: sound, harmless, and ready to be replaced.
#[tokio::test]
async fn a_fresh_installation_serves_nobody_and_says_so() {
    let text = read("deploy/debian/streamgate.yaml");
    let config = sound(&text);
    let admin = config.server.admin.listen.to_string();
    assert_eq!(admin, "127.0.0.1:9090", "where `streamgate health` and `top` ask by themselves");
    for listener in &config.server.listen {
        let Address::Tcp(address) = listener.address else { continue };
        assert!(address.ip().is_loopback(), "{address}");
    }
    assert!(config.clusters.is_empty() && text.contains("upgrade_socket: /run/streamgate/"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("streamgate.yaml");
    let here = dir.path().display().to_string();
    let any = text.replace(":8080", ":0").replace(":9090", ":0").replace("/run/streamgate", &here);
    std::fs::write(&file, any).unwrap();
    let checked = output(&["check", "-c", file.to_str().unwrap()], &[]);
    assert_eq!(checked, (Some(0), format!("{}: ok\n", file.display())), "without a warning");
    let gateway = crate::support::Gateway::start_on(&file).await;
    let answer = gateway.ask(&crate::support::wire::Request::unary()).await;
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.json()["error"]["code"], "no_backend");
    let (code, said) = output(&["health", &format!("http://{}", gateway.admin)], &[]);
    assert_eq!((code, said.trim()), (Some(0), "ready"));
}

/// The unit of the package differs from the one in `deploy/` by the path of the binary and its user alone.
#[test]
fn the_packages_unit_is_the_other_one_in_its_place() {
    let dir = laid_out();
    let path = dir.path().join("stage/systemd/streamgate.service");
    let unit = std::fs::read_to_string(&path).unwrap();
    let original = read("deploy/systemd/streamgate.service");
    let differ: Vec<&str> =
        unit.lines().filter(|line| !original.lines().any(|other| other == *line)).collect();
    assert!(
        differ.contains(&"ExecStart=/usr/bin/streamgate run -c /etc/streamgate/streamgate.yaml"),
        "{differ:?}"
    );
    assert!(differ.contains(&"User=streamgate") && !unit.contains("DynamicUser"), "{differ:?}");
    assert!(!unit.contains("/usr/local"), "{unit}");
    let user = read("deploy/debian/sysusers.conf");
    assert!(user.lines().any(|line| line.starts_with("u streamgate ")), "{user}");

    let here = unit.replace("/usr/bin/streamgate", env!("CARGO_BIN_EXE_streamgate"));
    std::fs::write(&path, here).unwrap();
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output() {
        Err(error) => not_run("the_packages_unit_is_the_other_one_in_its_place", &error.to_string()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let ours: Vec<&str> = said.lines().filter(|line| line.contains("streamgate")).collect();
            assert!(output.status.success() && ours.is_empty(), "{said}");
        }
    }
}

/// The scripts that dpkg runs are scripts, and stop at what fails.
#[test]
fn the_scripts_of_the_package_are_sound() {
    for name in ["postinst", "prerm", "postrm"] {
        let path: PathBuf = shipped("deploy/debian").join(name);
        let checked = Command::new("sh").arg("-n").arg(&path).output().unwrap();
        assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stderr));
        let text = read(Path::new("deploy/debian").join(name).to_str().unwrap());
        assert!(text.starts_with("#!/bin/sh\n") && text.contains("\nset -e\n"), "{name}");
    }
}
