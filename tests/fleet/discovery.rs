//! Backends that are found by name, with a hosts file that changes under the gateway.
//!
//! The file is the gateway's own, in a mount namespace; where the machine has no user namespaces the cases
//! are noted as not run.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use crate::support::wait::{SOON, wait_until_async};
use crate::support::wire::{ANSWER, Request, event, json_answer};
use crate::support::{Gateway, Settings, Upstream, checks, not_run, streaming};
use serde_json::json;
use tempfile::TempDir;

/// A name, a hosts file that says what it is, and two engines on one port of two addresses.
struct Names {
    _dir: TempDir,
    hosts: PathBuf,
    engines: [Upstream; 2],
}

impl Names {
    /// `None` where a process cannot have a hosts file of its own.
    async fn new(test: &str) -> Option<Self> {
        let able =
            Command::new("unshare").args(["-rm", "sh", "-c", "mount --bind /etc/hosts /etc/hosts"]).output();
        if !able.is_ok_and(|output| output.status.success()) {
            not_run(test, "unshare -rm cannot mount");
            return None;
        }
        let first = Upstream::on("127.0.0.2".parse().expect("an address"), None).await;
        let second = SocketAddr::new("127.0.0.3".parse().expect("an address"), first.addr.port());
        let second = Upstream::at(second, None).await;
        let dir = tempfile::tempdir().expect("temporary directory");
        let hosts = dir.path().join("hosts");
        fs::write(&hosts, "").expect("write");
        Some(Self { _dir: dir, hosts, engines: [first, second] })
    }

    /// The name has these addresses from now on. In place: the file is mounted.
    fn are(&self, addrs: &[&str]) {
        let lines: String = addrs.iter().map(|addr| format!("{addr} engines.test\n")).collect();
        fs::write(&self.hosts, format!("127.0.0.1 localhost\n{lines}")).expect("write");
    }

    fn settings(&self) -> Settings {
        let dns = format!("engines.test:{}", self.engines[0].addr.port());
        let cluster = json!({ "profile": "openai", "balance": "round_robin",
                              "discover": { "dns": dns, "every": "50ms" } });
        Settings::new(&[]).set("clusters.c", cluster)
    }
}

async fn backends(gateway: &Gateway) -> Vec<String> {
    let status = gateway.status().await;
    let names = status["clusters"][0]["backends"].as_array().expect("a list").iter();
    names.map(|backend| backend["name"].as_str().expect("a name").to_owned()).collect()
}

async fn wait_backends(gateway: &Gateway, names: &[&str]) {
    wait_until_async(&format!("the backends {names:?}"), SOON, || async { backends(gateway).await == names })
        .await;
}

/// Two requests at once: in turns, each engine gets one.
async fn served_by_both(gateway: &Gateway, engines: &mut [Upstream; 2]) {
    let clients = [gateway.send(&Request::unary()).await, gateway.send(&Request::unary()).await];
    for engine in engines {
        engine.call().await.answer(json_answer(ANSWER)).await;
    }
    for mut client in clients {
        assert_eq!(client.answer().await.status(), 200);
    }
}

#[tokio::test]
async fn backends_come_and_go_with_the_addresses_of_a_name() {
    let Some(mut names) = Names::new("backends_come_and_go_with_the_addresses_of_a_name").await else {
        return;
    };
    names.are(&["127.0.0.2"]);
    let gateway = Gateway::start_with_hosts(&names.hosts, names.settings()).await;
    assert_eq!(backends(&gateway).await, ["127.0.0.2"]);
    let (client, mut call) = streaming(&gateway, &mut names.engines[0], &["1"]).await;
    let host = format!("engines.test:{}", names.engines[0].addr.port());
    assert_eq!(call.request.head.get("host"), Some(host.as_str()), "Host is the name that was asked for");

    names.are(&["127.0.0.2", "127.0.0.3"]);
    wait_backends(&gateway, &["127.0.0.2", "127.0.0.3"]).await;
    served_by_both(&gateway, &mut names.engines).await;

    // The first goes; its stream has time to end.
    names.are(&["127.0.0.3"]);
    wait_backends(&gateway, &["127.0.0.3"]).await;
    let asked = names.engines[0].connections();
    for _ in 0..3 {
        let mut client = gateway.send(&Request::unary()).await;
        names.engines[1].call().await.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
    }
    assert_eq!(names.engines[0].connections(), asked);
    assert_eq!(gateway.metric("in_flight", &[("backend", "127.0.0.2")]).await, 1.0);
    call.chunk(event("2")).await;
    checks::ends_same(client, call, [event("1"), event("2")].concat().as_bytes()).await;

    // A name that cannot be looked up changes nothing.
    names.are(&[]);
    gateway.wait_log("cannot be looked up").await;
    assert_eq!(backends(&gateway).await, ["127.0.0.3"]);
    assert_eq!(gateway.metric("config_generation", &[]).await, 1.0, "it is the same configuration");
    checks::at_rest(&gateway).await;
}

/// A backend that is found later is checked like those that were there at the start.
#[tokio::test]
async fn a_backend_that_is_found_later_is_checked() {
    let Some(names) = Names::new("a_backend_that_is_found_later_is_checked").await else { return };
    names.are(&["127.0.0.2"]);
    let checks = json!({ "active": { "path": "/health", "every": "50ms", "timeout": "50ms" } });
    let settings = names.settings().set("clusters.c.health", checks);
    let gateway = Gateway::start_with_hosts(&names.hosts, settings).await;
    let checked = |backend: &'static str| {
        let gateway = &gateway;
        async move {
            let labels = [("backend", backend), ("kind", "check")];
            gateway.wait_metric_where("checks", "health_checks_total", &labels, |count| count >= 1.0).await;
        }
    };
    checked("127.0.0.2").await;
    names.are(&["127.0.0.2", "127.0.0.3"]);
    wait_backends(&gateway, &["127.0.0.2", "127.0.0.3"]).await;
    checked("127.0.0.3").await;
}

/// A start without an answer is a start; a drain and a count outlive the absence of the address.
#[tokio::test]
async fn a_name_without_an_address_is_waited_for() {
    let Some(mut names) = Names::new("a_name_without_an_address_is_waited_for").await else { return };
    let gateway = Gateway::start_with_hosts(&names.hosts, names.settings()).await;
    gateway.wait_log("has no address yet").await;
    checks::rejected(&gateway.ask(&Request::unary()).await, 503, "no_backend");
    gateway.wait_log("no address of its name is known yet").await;
    names.are(&["127.0.0.2", "127.0.0.3"]);
    wait_backends(&gateway, &["127.0.0.2", "127.0.0.3"]).await;
    served_by_both(&gateway, &mut names.engines).await;
    // Reloads and answers do not get into each other's way.
    assert_eq!(gateway.admin_post("/drain/c/127.0.0.3").await.status(), 200);
    assert_eq!(gateway.reload(names.settings().set("clusters.c.keepalive", "3s")).await, 2);
    assert_eq!(backends(&gateway).await, ["127.0.0.2", "127.0.0.3"]);
    assert_eq!(gateway.status().await["clusters"][0]["backends"][1]["state"], "drained");
}

/// A reload that brings a name begins with its addresses.
#[tokio::test]
async fn a_reload_brings_a_name_with_its_addresses() {
    let Some(mut names) = Names::new("a_reload_brings_a_name_with_its_addresses").await else { return };
    names.are(&["127.0.0.3"]);
    let before = Settings::new(&[names.engines[0].addr]);
    let gateway = Gateway::start_with_hosts(&names.hosts, before.clone()).await;
    assert_eq!(gateway.reload(names.settings()).await, 2);
    let mut client = gateway.send(&Request::unary()).await;
    names.engines[1].call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    assert_eq!(gateway.reload(before).await, 3);
    assert_eq!(backends(&gateway).await, ["u1"]);
}

/// The host of a URL is looked up at each reload: it moves when it has moved, and stays when nobody knows it.
#[tokio::test]
async fn the_host_of_a_url_moves_with_a_reload() {
    let Some(mut names) = Names::new("the_host_of_a_url_moves_with_a_reload").await else { return };
    names.are(&["127.0.0.2"]);
    let url = format!("http://engines.test:{}", names.engines[0].addr.port());
    let settings = Settings::new(&[names.engines[0].addr]).set("clusters.c.backends.0.url", url);
    let gateway = Gateway::start_with_hosts(&names.hosts, settings.clone()).await;
    let address = async || gateway.status().await["clusters"][0]["backends"][0]["address"].clone();
    let at = |engine: &Upstream| serde_json::Value::from(engine.addr.to_string());
    assert_eq!(address().await, at(&names.engines[0]));
    assert_eq!(gateway.reload(settings.clone()).await, 1, "it is where it was");
    names.are(&["127.0.0.3", "127.0.0.2"]);
    assert_eq!(gateway.reload(settings.clone()).await, 1, "it is still there");
    names.are(&["127.0.0.3"]);
    assert_eq!(gateway.reload(settings.clone()).await, 2);
    assert_eq!(address().await, at(&names.engines[1]));
    let mut client = gateway.send(&Request::unary()).await;
    names.engines[1].call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    names.are(&[]);
    assert_eq!(gateway.reload(settings.set("timeouts.idle", "5s")).await, 3);
    gateway.wait_log("it is taken to be at 127.0.0.3").await;
    assert_eq!(address().await, at(&names.engines[1]));
}
