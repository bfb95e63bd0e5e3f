//! A gateway that is itself in want, and backends that are well.

use futures::future::join_all;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::support::wait::{ms, silence};
use crate::support::wire::{ANSWER, Request, json_answer};
use crate::support::{Gateway, Settings, Upstream, checks, fleet};

/// Sets how many file descriptors the gateway may have from now on, and gives what it was.
fn limit_descriptors(gateway: &Gateway, limit: Rlimit) -> Rlimit {
    let pid = i32::try_from(gateway.pid()).ok().and_then(Pid::from_raw);
    prlimit(Some(pid.expect("a process")), Resource::Nofile, limit).expect("its own user may")
}

/// Without a descriptor the gateway says that it is itself in want: no backend is blamed for it and none asked in
/// vain, by requests or by checks, and its memory is watched all the while.
#[tokio::test]
async fn what_the_gateway_lacks_is_no_failure_of_its_backends() {
    // More than it takes to eject both.
    const CLIENTS: usize = 8;
    let engines = join_all([(); 2].map(|()| Upstream::answering(|_| json_answer(ANSWER)))).await;
    let gateway = Gateway::start(fleet::with(fleet::checks())(Settings::new(&engines))).await;
    gateway.checked().await;
    // Whoever is to be answered has to be there before: a connection ends with the answer of a failed attempt.
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = gateway.client().await;
        client.send(Request::bare("GET", "/nowhere").bytes()).await;
        assert_eq!(client.answer().await.status(), 404);
        clients.push(client);
    }

    let none = Rlimit { current: Some(3), ..getrlimit(Resource::Nofile) };
    let roomy = limit_descriptors(&gateway, none);
    for client in &mut clients {
        client.send(Request::unary().bytes()).await;
        let answer = client.answer().await;
        checks::rejected(&answer, 503, "overloaded");
        assert_eq!(answer.head.get("retry-after"), Some("1"));
    }
    gateway
        .wait_log("could not be checked: the gateway has no means left for a connection: too many open files")
        .await;
    // Longer than from one look at the memory to the next.
    silence(ms(300)).await;
    limit_descriptors(&gateway, roomy);

    assert_eq!(gateway.ask(&Request::unary()).await.status(), 200);
    gateway.nobody_ejected().await;
    assert!(gateway.is_up("u1").await && gateway.is_up("u2").await);
    assert_eq!(gateway.metric("retries_total", &[]).await, 0.0);
    for line in &gateway.all_access(2 * CLIENTS + 1).await[CLIENTS..2 * CLIENTS] {
        assert_eq!((&line["attempts"], &line["outcome"]), (&1.into(), &"rejected".into()), "{line}");
    }
    assert!(!gateway.log().contains("cannot be read"), "{}", gateway.log());
    assert_eq!(gateway.status().await["memory"]["is_read"], true);
}
