//! Room at the admin listener: for those who ask, whoever else is connected.

use crate::support::wait::{SOON, wait_until, within};
use crate::support::{Client, as_is, one_engine};

/// Connections that ask nothing, or half of something, keep no probe from its answer and no descriptor for long; who
/// watches is none of them.
#[tokio::test]
async fn connections_that_ask_nothing_make_room() {
    const SILENT: usize = 100;
    const PLACES: usize = 64;
    let (gateway, _engine) = one_engine(as_is).await;
    let mut watching = Client::connect(gateway.admin).await;
    watching.send("GET /live/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(watching.head().await.status(), 200);
    let fds = gateway.fd_count();
    let mut silent = Vec::new();
    for number in 0..SILENT {
        let mut client = Client::connect(gateway.admin).await;
        if number % 2 == 0 {
            client.send("GET /livez HTTP/1.1\r\nHost: local").await;
        }
        silent.push(client);
    }
    for _ in 0..3 {
        assert_eq!(gateway.admin_get("/livez").await.status(), 200);
    }
    let (first, last) = silent.split_at_mut(SILENT - PLACES);
    for client in first {
        client.closed().await;
    }
    wait_until("no more than there are places", SOON, || gateway.fd_count() <= fds + PLACES).await;
    // The time of the others is over after a while, and that of one who kept his connection.
    let mut kept = Client::connect(gateway.admin).await;
    kept.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(kept.answer().await.status(), 200);
    wait_until("their time is over", 3 * SOON, || gateway.fd_count() <= fds).await;
    for client in last.iter_mut().chain([&mut kept]) {
        client.closed().await;
    }
    watching.take_body();
    assert!(within("a view", SOON, watching.read_body()).await, "who watches goes on");
}
