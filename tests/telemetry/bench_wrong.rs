//! `streamgate bench` with answers that are wrong, targets that are not there, arguments that make no sense, and the
//! help.

use std::net::TcpListener;

use serde_json::json;

use super::bench::{bench, listed};
use crate::support::gateway::output;
use crate::support::wait::{ms, silence};
use crate::support::wire::{DONE, LAST_CHUNK, SSE_HEAD, chunk, event, json_answer};
use crate::support::{Engine, Gateway, Settings, Upstream, as_is};

/// Each fault by itself, asked for by the requests: how it is counted, and what is said of it.
#[tokio::test]
async fn each_fault_of_an_engine_is_named() {
    let engine = Engine::start().await;
    let url = format!("http://{}/v1", engine.addr);
    for (fault, kind, words) in [
        ("error_at=3", "error event", "an error event: the engine failed while generating"),
        ("error_then_done=3", "error event", "an error event: the engine failed while generating"),
        ("no_done", "no end", "it ended after 12 tokens without [DONE]"),
        ("fin_at=5", "cut", "cut after 5 tokens: "),
        ("reset_at=5", "cut", "cut after 5 tokens: "),
        ("truncated_chunk_at=5", "cut", "cut after 5 tokens: "),
        ("stall_at=2", "silence", "nothing came for 2s"),
        ("garbage", "no HTTP", "it is no HTTP that can be read: "),
        ("fin_before_head", "cut", "cut after 0 tokens: "),
        ("status=503", "status 503", "status 503: a fault that was asked for"),
    ] {
        let header = format!("x-sim-fault: {fault}");
        let ran = bench(&url, &["-n", "2", "--model", "m", "--timeout", "2s", "--header", &header]).await;
        assert_eq!(ran.code, Some(1), "{fault}: {}", ran.said);
        assert_eq!(ran.json["errors"], json!({ kind: 2 }), "{fault}: {}", ran.said);
        assert!(ran.said.contains(words), "{fault}: {}", ran.said);
        let id = ran.json["wrong"][0]["request_id"].as_str().expect("an id");
        assert!(ran.said.contains(&format!("  {id}: ")), "{fault}: {}", ran.said);
    }
}

/// The same through a gateway, which tells what it can of them.
#[tokio::test]
async fn faults_behind_a_gateway_are_seen_in_front_of_it() {
    let engine = Engine::start().await;
    let (_gateway, url) = listed(&engine, as_is).await;
    for (fault, kind) in [("error_at=3", "error event"), ("no_done", "no end"), ("reset_at=5", "error event")]
    {
        engine.faults(fault).await;
        let ran = bench(&url, &["-n", "3"]).await;
        assert_eq!((ran.code, &ran.json["errors"]), (Some(1), &json!({ kind: 3 })), "{fault}: {}", ran.said);
    }
    engine.faults("").await;
    let ran = bench(&url, &["-n", "3"]).await;
    assert_eq!((ran.code, &ran.json["errors"]), (Some(0), &json!({})), "{}", ran.said);
}

/// A stream of these tokens, stamped as a simulated engine's, of the answer to this request.
fn stamped(id: &str, tokens: &[u32]) -> String {
    let event = |token: &u32| {
        format!(
            "data: {{\"id\":\"chatcmpl-{id}\",\"choices\":[{{\"delta\":{{\"content\":\"tok{token} t=1 \"}}}}]}}\n\n"
        )
    };
    let finish = "\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]";
    let tokens: String = tokens.iter().map(event).collect();
    format!("{tokens}data: {{\"id\":\"chatcmpl-{id}\",{finish}}}\n\n{DONE}")
}

fn streamed(body: &str) -> Vec<u8> {
    [SSE_HEAD.as_bytes(), &chunk(body), LAST_CHUNK.as_bytes()].concat()
}

/// What an engine would have to lose, double, swap or mix up, and what none should send.
#[tokio::test]
async fn what_no_simulated_engine_does_is_seen() {
    type Answer = fn(&str) -> Vec<u8>;
    let cases: [(&str, Answer); 8] = [
        ("token 2 came where 1 was due", |id| streamed(&stamped(id, &[0, 2]))),
        ("token 1 came where 2 was due", |id| streamed(&stamped(id, &[0, 1, 1]))),
        ("an event of the answer \"chatcmpl-other\"", |_| streamed(&stamped("other", &[0, 1]))),
        ("behind its end came data: [DONE]", |id| streamed(&(stamped(id, &[0]) + DONE))),
        ("behind its end came", |id| {
            [streamed(&stamped(id, &[0])), b"HTTP/1.1 200 OK\r\n\r\n".to_vec()].concat()
        }),
        ("it cannot be read as JSON", |_| streamed("data: {\"choices\":\n\n")),
        ("without finish reason or [DONE]", |_| streamed(": nothing more\n\n")),
        ("content type \"application/json\" where text/event-stream was due", |_| json_answer("{}")),
    ];
    for (words, answer) in cases {
        let addr = Upstream::answering(move |request| {
            answer(request.head.get("x-request-id").expect("every request has an id"))
        })
        .await;
        let ran = bench(&format!("http://{addr}/v1"), &["-n", "2", "--model", "m"]).await;
        assert_eq!((ran.code, &ran.json["requests"]["wrong"]), (Some(1), &json!(2)), "{words}: {}", ran.said);
        assert!(ran.said.contains(words), "{words}: {}", ran.said);
    }
    let right = Upstream::answering(|request| {
        streamed(&stamped(request.head.get("x-request-id").expect("an id"), &[0, 1, 2]))
    })
    .await;
    let ran = bench(&format!("http://{right}/v1"), &["-n", "2", "--model", "m"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.said);
}

#[tokio::test]
async fn a_target_that_is_away_is_told_at_once() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("bind").local_addr().expect("bound");
    for more in [&[][..], &["--model", "m"]] {
        let ran = bench(&format!("http://{closed}/v1"), more).await;
        assert_eq!(ran.code, Some(75), "{}", ran.said);
        assert!(
            ran.said.contains(&format!("http://{closed}: no connection: Connection refused")),
            "{}",
            ran.said
        );
    }
    let silent = TcpListener::bind("127.0.0.1:0").expect("bind");
    let url = format!("http://{}/v1", silent.local_addr().expect("bound"));
    let ran = bench(&url, &["--timeout", "1s"]).await;
    assert_eq!(ran.code, Some(75), "{}", ran.said);
    assert!(ran.said.contains("nothing came for 1s"), "{}", ran.said);
    let ran = bench("http://no.such.host.invalid/v1", &[]).await;
    assert_eq!(ran.code, Some(75), "{}", ran.said);
    let engine = Engine::start().await;
    let asked = ["--model", "m", "--engine", &format!("http://{closed}")];
    let ran = bench(&format!("http://{}/v1", engine.addr), &asked).await;
    assert_eq!(ran.code, Some(75), "{}", ran.said);
    assert!(ran.said.contains(&format!("the engine http://{closed}/: no connection")), "{}", ran.said);
    assert_eq!(engine.count("requests").await, 0, "told before the load");
}

#[tokio::test]
async fn a_gateway_that_wants_a_key_gets_it_from_the_environment() {
    let engine = Engine::start().await;
    let digest = "e100fbce008c04ec40637af0af91fb2f05aeedc23f856a2d3c0b1580625d755e";
    let keys = json!([{ "name": "team", "sha256": digest }]);
    let settings = Settings::new(&[engine.addr]).set("routes.0.models", json!(["m"])).set("keys", keys);
    let gateway = Gateway::start(settings).await;
    let url = format!("http://{}/v1", gateway.addr);
    let ran = bench(&url, &["-n", "1"]).await;
    assert_eq!(ran.code, Some(64), "{}", ran.said);
    assert!(ran.said.contains("says 401") && ran.said.contains("--key-env"), "{}", ran.said);
    let (code, said) = output(&["bench", &url, "-n", "2", "--key-env", "KEY"], &[("KEY", "canary")]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("canary"), "{said}");
}

#[test]
fn bad_arguments_are_64_and_say_which() {
    let url = "http://127.0.0.1:1/v1";
    for (args, words) in [
        (&[][..], "<URL>"),
        (&["127.0.0.1:8080"], "http://127.0.0.1:8080/v1"),
        (&[url, "--cancel", "20"], "has no @"),
        (&[url, "--unary", "60", "--slow", "50@9"], "more than 100 percent"),
        (&[url, "--duration", "5"], "has no unit"),
        (&[url, "--header", "authorization: Bearer canary"], "--key-env"),
        (&[url, "--reload-every", "5s"], "--reload-url"),
        (&[url, "--nonsense"], "--nonsense"),
        (&["http://127.0.0.1:99999/v1"], "has a port that is none"),
        (&[url, "--engine", "http://127.0.0.1:"], "has a port that is none"),
        (&[url, "-d", "0s"], "no time at all"),
        (&[url, "--timeout", "0s"], "no time at all"),
        (&[url, "--header", "content-length: x"], "set by this client itself"),
        (&[url, "--cancel", "20@65"], "--max-tokens"),
    ] {
        let (code, said) = output(&[&["bench"], args].concat(), &[]);
        assert_eq!(code, Some(64), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    let (code, said) = output(&["bench", url, "--json", "/nowhere/run.json"], &[]);
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("--json /nowhere/run.json"), "{said}");
}

/// A full disk takes the figures' file, and neither the table nor the verdict; a run that comes to nothing takes nothing.
#[tokio::test]
async fn a_file_that_cannot_be_written_costs_no_table() {
    let engine = Engine::start().await;
    let url = format!("http://{}/v1", engine.addr);
    let run =
        |more: &[&str]| output(&[&["bench", &url, "-n", "2", "--model", "m", "--json"], more].concat(), &[]);
    let (code, said) = run(&["/dev/full"]);
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("0 wrong") && said.contains("--json /dev/full: No space left"), "{said}");
    let (code, said) = run(&["/dev/full", "--header", "x-sim-fault: fin_at=5"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("2 wrong") && said.contains("--json /dev/full: No space left"), "{said}");
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("run.json");
    std::fs::write(&file, "the run before").expect("writable");
    let (code, said) =
        output(&["bench", "http://127.0.0.1:1/v1", "--json", file.to_str().expect("UTF-8")], &[]);
    assert_eq!(code, Some(75), "{said}");
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "the run before");
}

/// Heartbeats show that a connection lives, not that an answer comes: in front of it, and behind a token.
#[tokio::test]
async fn an_engine_that_sends_only_heartbeats_is_given_up() {
    for (head, begin, beat) in [
        (SSE_HEAD, String::new(), ": alive\n\n"),
        (SSE_HEAD, event("x"), ": alive\n\n"),
        (&SSE_HEAD.replace("text/event-stream", "application/json"), String::new(), "\n"),
    ] {
        let mut upstream = Upstream::start().await;
        let url = format!("http://{}/v1", upstream.addr);
        let share = if beat == "\n" { "100" } else { "0" };
        let args = ["-n", "1", "--model", "m", "--timeout", "1s", "--unary", share];
        let beating = async {
            let mut call = upstream.call().await;
            call.send([head.as_bytes(), &if begin.is_empty() { Vec::new() } else { chunk(&begin) }].concat())
                .await;
            while call.try_send(chunk(beat)).await.is_ok() {
                silence(ms(50)).await;
            }
        };
        let (ran, ()) = tokio::join!(bench(&url, &args), beating);
        assert_eq!((ran.code, &ran.json["errors"]), (Some(1), &json!({ "silence": 1 })), "{}", ran.said);
        assert!(ran.said.contains("nothing but heartbeats came for 1s"), "{}", ran.said);
    }
}

#[test]
fn the_help_has_examples_and_the_exit_codes() {
    let (code, said) = output(&["bench", "--help"], &[]);
    assert_eq!(code, Some(0));
    for words in [
        "streamgate bench http://127.0.0.1:8080/v1\n",
        "PERCENT@TOKEN",
        "Exit codes: 0 every answer was right",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
