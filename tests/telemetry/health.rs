//! `streamgate health`: what containers and scripts ask.

use crate::support::gateway::output;
use crate::support::wait::{SOON, wait_until_async};
use crate::support::{one_engine, streaming};

/// Ready without a token, not ready in a drain, and nobody there: three exit codes.
#[tokio::test]
async fn ready_draining_and_away_are_told_apart() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let token = folder.path().join("token");
    std::fs::write(&token, "canary").expect("write");
    let (mut gateway, mut upstream) = one_engine(|settings| {
        settings
            .set("server.admin.token_file", token.to_str().expect("UTF-8"))
            .set("timeouts.idle", "25s")
            .set("server.shutdown.drain", "10m")
    })
    .await;
    let admin = format!("http://{}", gateway.admin);
    let (code, said) = output(&["health", &admin], &[]);
    assert_eq!((code, said.as_str()), (Some(0), "ready\n"));

    let stream = streaming(&gateway, &mut upstream, &["1"]).await;
    gateway.terminate();
    wait_until_async("not ready", SOON, || async { output(&["health", &admin], &[]).0 == Some(1) }).await;
    let (code, said) = output(&["health", &admin], &[]);
    let expected = format!("streamgate: {admin}: not ready: 503 draining\n");
    assert_eq!((code, said), (Some(1), expected));
    drop(stream);
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));

    let (code, said) = output(&["health", &admin], &[]);
    assert_eq!((code, said.contains("Connection refused")), (Some(75), true), "{said}");
    let (code, said) = output(&["health", "127.0.0.1:9090"], &[]);
    assert_eq!((code, said.contains("http://ADDRESS:PORT")), (Some(64), true), "{said}");
}
