//! Keys, credentials of engines and prompts are in no output, wherever a client has put them and whatever becomes of
//! its request; and what `streamgate key new` says.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::gateway::{config_file, output};
use crate::support::keys::{digest, key};
use crate::support::wire::{self, CHAT_PATH, MIB, Request, event};
use crate::support::{Client, Gateway, Settings, Upstream};
use serde_json::json;

const KEY: &str = "canary-key-of-team-a";
const ENGINES: &str = "canary-of-the-engine";

/// A chat request with a canary wherever a client can put a key or a prompt. Not among the places are the path, the
/// model and `x-request-id`, which logs are for.
fn request(key: &str, model: &str) -> Request {
    let body = json!({
        "model": model, "stream": true, "session_id": "canary-session", "user": "canary-user", "api_key": KEY,
        "messages": [{ "role": "system", "content": "canary-prompt" },
                     { "role": "user", "content": [{ "type": "text", "text": "canary-prompt-part" }] }],
        "tools": [{ "type": "function", "function": { "name": "canary_tool", "parameters": {} } }],
        "metadata": { "canary": "canary-metadata" }, "stop": ["canary-stop"],
    });
    Request::bare("POST", &format!("{CHAT_PATH}?api_key={KEY}&prompt=canary-prompt"))
        .header("Content-Type: application/json")
        .header(&format!("Authorization: Bearer {key}"))
        .header(&format!("X-Api-Key: {key}"))
        .header("Proxy-Authorization: Basic canary-proxy")
        .header("Cookie: session_id=canary-cookie; key=canary-cookie-key")
        .header("X-Session-Id: canary-header-session")
        .header("User-Agent: canary-agent")
        .header("Referer: http://canary.example/?key=canary")
        .header("X-Forwarded-For: canary")
        .body(body.to_string())
}

/// Answers and streams of the engine hold canaries as well: what the client is sent of them is not looked at.
fn settings(engine: &Upstream) -> Settings {
    let mut bound = key("team-a", KEY);
    bound["models"] = json!(["m"]);
    Settings::new(&[engine.addr])
        .set("log.level", "trace")
        .set("timeouts.first_event", "2s")
        .set("clusters.c.auth", json!({ "bearer_env": "ENGINE_KEY" }))
        .set("clusters.c.affinity", json!({ "by": ["session", "prefix"] }))
        .set("routes.0.body_bytes", "1MiB")
        .session(&["header:X-Session-Id", "cookie:session_id", "body:/session_id"], &["body:/user"])
        .set("keys", json!([bound]))
}

/// Every way in which a request with canaries is refused. Gives all that was told.
async fn refused(gateway: &Gateway) -> String {
    let good = || request(KEY, "m");
    let mut told = String::new();
    let requests = [
        (request("canary-wrong-key", "m"), 401),
        (good().header("X-Api-Key: canary-another"), 401),
        (request("", "m"), 401),
        (request(KEY, "other"), 403),
        (good().body("{\"canary\": \"canary-prompt"), 400),
        (good().body("{\"model\": [\"canary-prompt\"]}"), 400),
        (good().body(vec![b'c'; 2 * MIB]), 413),
        (good().header("Host: canary.example"), 400),
        (good().header("Expect: canary"), 417),
        (good().header("X-Long: canary").header(&format!("X-Longer: {}", "canary".repeat(20_000))), 431),
    ];
    for (request, status) in requests {
        let mut client = gateway.client().await;
        // Who refuses may close before it has heard all.
        drop(client.try_send(request.bytes()).await);
        let answer = client.answer().await;
        assert_eq!(answer.status(), status, "{}", answer.text());
        told += &format!("{:?} {}\n", answer.head, answer.text());
    }
    for _ in 0..30 {
        let answer = gateway.ask(&request("canary-guess", "m")).await;
        told += &format!("{:?} {}\n", answer.head, answer.text());
    }
    told
}

/// Every way in which one ends that was let in. Gives what the gateway told of its own.
async fn let_in(gateway: &Gateway, engine: &mut Upstream) -> String {
    let begin = async || gateway.send(&request(KEY, "m")).await;
    let mut told = String::new();
    let mut heard = async |mut client: Client, status: u16| {
        let answer = client.answer().await;
        assert_eq!(answer.status(), status, "{}", answer.text());
        told += &format!("{:?} {}\n", answer.head, answer.text().replace("canary-answer", ""));
    };
    let client = begin().await;
    let mut call = engine.call().await;
    assert_eq!(call.request.head.get("authorization"), Some(&*format!("Bearer {ENGINES}")));
    call.send(wire::stream_answer("canary-answer")).await;
    call.close();
    heard(client, 200).await;
    let client = begin().await;
    engine.call().await.answer(b"canary-answer\r\n\r\n".to_vec()).await;
    heard(client, 502).await;
    // The second of a kind within a second is told at level debug.
    for _ in 0..2 {
        let client = begin().await;
        // On a connection of its own, or it would be sent once more: the first answer's was closed, the second's is not
        // kept.
        engine.call().await.reset();
        heard(client, 502).await;
    }
    let client = begin().await;
    engine.call().await.answer(wire::answer("401 Unauthorized", &[], "canary-answer")).await;
    heard(client, 401).await;
    let client = begin().await;
    let silent = engine.call().await;
    heard(client, 504).await;
    drop(silent);
    let client = begin().await;
    let mut call = engine.call().await;
    call.open().await;
    call.chunk(event("canary-answer")).await;
    call.reset();
    heard(client, 200).await;
    let client = begin().await;
    let mut call = engine.call().await;
    client.close();
    call.gone().await;
    told
}

#[tokio::test]
async fn no_output_holds_a_key_a_credential_or_a_prompt() {
    let mut engine = Upstream::start().await;
    for format in ["text", "json"] {
        let settings = settings(&engine).set("log.format", format);
        let mut gateway = Gateway::start_in(settings.clone(), &[("ENGINE_KEY", ENGINES)]).await;
        let mut outputs =
            vec![("answers", let_in(&gateway, &mut engine).await), ("refusals", refused(&gateway).await)];
        // A key where its digest belongs: the operator is told, and nobody else.
        gateway.rewrite(settings.set("keys", json!([{ "name": "a", "sha256": KEY }])));
        let bad = gateway.admin_post("/reload").await;
        assert_eq!(bad.status(), 422);
        outputs.push(("reload", bad.text()));
        for path in ["/metrics", "/status", "/config"] {
            let answer = gateway.admin_get(path).await;
            assert_eq!(answer.status(), 200);
            assert!(!answer.text().contains(&digest(KEY)), "{path} holds the digest of a key");
            outputs.push((path, answer.text()));
        }
        gateway.wait_metric("requests_total", &[("outcome", "client_closed")], 1.0).await;
        gateway.terminate();
        gateway.exit(Duration::from_secs(10)).await;
        outputs.push(("log", gateway.log()));
        outputs.push(("standard output", gateway.rest_of_stdout().await));
        outputs.push(("access log", gateway.access_text()));
        assert!(gateway.log().to_lowercase().contains("debug"), "the log is not talkative");
        assert!(gateway.access_text().contains("team-a"), "the access log names the key");
        for (name, output) in outputs {
            assert!(!output.contains("canary"), "the {name} tell:\n{output}");
        }
    }
}

/// Runs `key new` and gives what it wrote: standard output, standard error.
fn key_new(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamgate"));
    let output = command.args(["key", "new"]).args(arguments).stdin(Stdio::null()).output().expect("run it");
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
    (output.status.code(), out, err)
}

/// A file with these lines as its keys.
fn file_with(keys: &str) -> String {
    format!(
        "server: {{ listen: [{{ address: \"127.0.0.1:0\" }}], admin: {{ listen: \"127.0.0.1:0\" }} }}\n\
         clusters: {{ c: {{ profile: openai, backends: [{{ name: b, url: \"http://127.0.0.1:1\" }}] }} }}\n\
         routes: [{{ match: {{ path: /v1/chat/completions }}, cluster: c }}]\nkeys:\n{keys}\n"
    )
}

#[tokio::test]
async fn a_new_key_is_told_once_and_its_line_lets_it_in() {
    let odd_name = "team \"a\": ${HOME} #1";
    let mut lines = Vec::new();
    let mut keys = Vec::new();
    for arguments in [vec![], vec!["--name", "team-b"], vec!["-n", odd_name]] {
        let (code, out, err) = key_new(&arguments);
        assert_eq!(code, Some(0), "{err}");
        let (key, line) = out.split_once('\n').expect("two lines");
        let random = key.strip_prefix("sg-").expect("the prefix");
        // 192 bits in hex.
        assert!(random.len() == 48 && random.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
        assert!(line.contains(&digest(key)), "{line}");
        assert!(err.contains("kept nowhere") && !err.contains(key), "{err}");
        assert_eq!(out.matches(key).count(), 1);
        lines.push(line.trim_end().to_owned());
        keys.push(key.to_owned());
    }
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    let (_dir, file) = config_file(&file_with(&lines.join("\n")));
    let (code, said) = output(&["check", "-c", file.to_str().expect("UTF-8")], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("warning"), "{said}");
    let gateway = Gateway::start_on(&file).await;
    let ask = async |key: &str| gateway.ask(&Request::bare("GET", "/v1/models").with_key(key)).await.status();
    for key in &keys {
        assert_eq!(ask(key).await, 200);
    }
    assert_eq!(ask(&digest(&keys[0])).await, 401, "what the file has is no key");
    for name in ["", "two\nlines"] {
        let (code, out, err) = key_new(&["--name", name]);
        assert_eq!((code, out.as_str()), (Some(64), ""), "{err}");
    }
}
