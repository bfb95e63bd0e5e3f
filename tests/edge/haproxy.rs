//! HAProxy in front of the gateway: what a real proxy says of its clients is understood, and nothing else that
//! they say.

use std::net::SocketAddr;
use std::path::Path;

use crate::support;
use crate::support::haproxy::Haproxy;
use crate::support::tls::Pair;
use crate::support::wait::{SOON, within};
use crate::support::wire::{ANSWER, Request, json_answer};
use crate::support::{Client, Gateway, Settings, Upstream};
use serde_json::json;
use tokio::net::TcpSocket;

/// A gateway with a plain listener, one for PROXY, and one for PROXY and TLS behind it.
async fn gateway(dir: &Path, upstream: &Upstream) -> Gateway {
    let tls = json!({ "certificates": [Pair::make(dir, &["localhost"]).named()] });
    let listeners = json!([
        { "address": "127.0.0.1:0" },
        { "address": "127.0.0.1:0", "proxy_protocol": true },
        { "address": "127.0.0.1:0", "proxy_protocol": true, "tls": tls },
    ]);
    let settings = Settings::new(&[upstream.addr])
        .set("server.listen", listeners)
        .set("server.trusted_proxies", json!(["127.0.0.1"]));
    Gateway::start(settings).await
}

/// Asks from another address of the loopback network, and claims to be somebody else still.
async fn ask_from(ip: [u8; 4], proxy: SocketAddr) -> Client {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((ip, 0))).expect("bind");
    let mut client = Client::over(within("connect", SOON, socket.connect(proxy)).await.expect("connect"));
    client.send(Request::unary().header("X-Forwarded-For: 192.0.2.66").bytes()).await;
    client
}

/// Whichever way it is said, the engine and the access log hear of the client that came to HAProxy, and of
/// nobody that this client made up.
#[tokio::test]
async fn haproxy_names_the_client_in_each_of_its_ways() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut upstream = Upstream::start().await;
    let gateway = gateway(dir.path(), &upstream).await;
    let [plain, proxy, secured] = [0, 1, 2].map(|number| gateway.listener(number));
    let servers = [
        ("http", format!("{plain}")),
        ("tcp", format!("{proxy} send-proxy")),
        ("tcp", format!("{proxy} send-proxy-v2")),
        ("tcp", format!("{proxy} send-proxy-v2 proxy-v2-options crc32c")),
        ("http", format!("{secured} send-proxy-v2 ssl verify none alpn http/1.1")),
        ("http", format!("{secured} send-proxy-v2 ssl verify none alpn h2")),
    ];
    let Some(haproxy) = Haproxy::start(&["timeout client 30s".to_owned()], &servers) else {
        let name = "haproxy_names_the_client_in_each_of_its_ways";
        return support::not_run(name, "this machine has no haproxy");
    };
    for ((_, server), port) in servers.iter().zip(&haproxy.ports) {
        let mut client = ask_from([127, 0, 0, 9], *port).await;
        let call = upstream.call().await;
        let heard = call.request.head.get("x-forwarded-for").expect("a client");
        assert_eq!(heard.split(", ").next(), Some("127.0.0.9"), "{server}");
        assert!(!heard.contains("192.0.2.66"), "{server}: {heard}");
        let scheme = if server.contains("ssl") { "https" } else { "http" };
        assert_eq!(call.request.head.get("x-forwarded-proto"), Some(scheme), "{server}");
        let id = call.request.head.get("x-request-id").expect("an id").to_owned();
        call.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200, "{server}");
        let line = gateway.wait_access(&id, |line| line["request_id"] == id).await;
        assert_eq!(line["client"], "127.0.0.9", "{server}: {line}");
    }
    assert_eq!(gateway.metric("connections_refused_total", &[]).await, 0.0);
}
