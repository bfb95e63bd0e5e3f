//! What a JSON body must be, held against the parser that most engines have: Python's.
//!
//! The gateway may refuse more than Python does. What it lets pass Python must read too, and in it the same
//! model, or a client could name one model to the gateway and another to the engine.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::wire::{ANSWER, CHAT_PATH, Request, json_answer};
use crate::support::{Gateway, Settings, Upstream, checks, not_run};

/// Bodies that pass, and those that do not.
fn table() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let nested =
        |levels: usize| format!(r#"{{"model":"m","a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    let members = |count: usize| format!(r#"{{"model":"m","a":{{{}}}}}"#, vec![r#""k":0"#; count].join(","));
    let number = |digits: usize| format!(r#"{{"model":"m","a":{}}}"#, "1".repeat(digits));
    let text = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    let mut pass = text(&[
        r#"{"model":"m"}"#,
        " \t\r\n{ \"model\" : \"m\" } \n",
        r#"{"mod\u0065l":"\u006d"}"#,
        r#"{"model":"\ud83d\ude00"}"#,
        r#"{"model":"é"}"#,
        r#"{"model":null}"#,
        r#"{"a":{"model":"x"},"model":"m"}"#,
        r#"{"a":"\",\"model\":\"x","model":"m"}"#,
        r#"{"model":"m","a":"\ud800"}"#,
        r#"{"model":"m","\udfff":1}"#,
        r#"{"model":"m","seed":1,"seed":2}"#,
        r#"{"model":"m","a":-0.0e-0,"b":1E+2,"c":[true,false,null]}"#,
        r#"{"model":"m","":{"":[]}}"#,
        "{\"model\":\"m\",\"a\":\"\u{7f}\u{2028}\"}",
        &nested(63),
        &members(99_998),
        &number(64),
    ]);
    pass.push(b"{\"model\":\"m\",\"a\":\"\xf0\x9f\x98\x80\"}".to_vec());
    let mut fail = text(&[
        "{",
        "{}{}",
        "{} x",
        "[]",
        "7",
        "null",
        "\u{feff}{}",
        r#"{"model":"a","model":"b"}"#,
        r#"{"model":"a","mod\u0065l":"b"}"#,
        r#"{"model":"a","a":{},"stream":false,"stream":true}"#,
        r#"{"model":"a","max_tokens":1,"max_tokens":2}"#,
        r#"{"a":NaN}"#,
        r#"{"a":Infinity}"#,
        r#"{"a":-Infinity}"#,
        r#"{"a":01}"#,
        r#"{"a":+1}"#,
        r#"{"a":.5}"#,
        r#"{"a":5.}"#,
        r#"{"a":1e}"#,
        r#"{"a":0x10}"#,
        r#"{"a":1,}"#,
        r#"{"a":[1,]}"#,
        r#"{'a':1}"#,
        r#"{a:1}"#,
        r#"{"a":1 /* x */}"#,
        "{\"a\":1 // x\n}",
        r#"{"a":"\x41"}"#,
        r#"{"a":"\u12"}"#,
        "{\"a\":\"\t\"}",
        "{\"a\":\"\0\"}",
        "{\"a\":\u{a0}1}",
        "{\u{b}\"a\":1}",
        r#"{"a":True}"#,
        r#"{"a"}"#,
        r#"{"a":"}"#,
        r#"{"model":"\ud800"}"#,
        r#"{"model":7}"#,
        &nested(64),
        &nested(100_000),
        &members(100_000),
        &number(65),
        &number(100_000),
    ]);
    fail.extend([
        b"{\"a\":\"\xff\"}".to_vec(),
        b"{\"a\":\"\xc0\xaf\"}".to_vec(),
        b"{\"a\":\"\xed\xa0\x80\"}".to_vec(),
        b"\xff\xfe{\0}\0".to_vec(),
        b"{\0}\0".to_vec(),
        b"\0\0\0{\0\0\0}".to_vec(),
    ]);
    (pass, fail)
}

/// Checklist 12: each body is read alike by both, or refused before an engine sees it.
#[tokio::test]
async fn what_passes_is_read_alike_by_the_gateway_and_by_python() {
    let engine = Upstream::answering(|_| json_answer(ANSWER)).await;
    let gateway = Gateway::start(Settings::new(&[engine])).await;
    let (pass, fail) = table();
    let Some(read) = read_by_python(&pass) else {
        return not_run("what_passes_is_read_alike_by_the_gateway_and_by_python", "no python3");
    };
    for (number, (body, read)) in pass.iter().zip(&read).enumerate() {
        let id = format!("pass-{number}");
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let request = Request::post(CHAT_PATH, body).header(&format!("X-Request-Id: {id}"));
        assert_eq!(gateway.ask(&request).await.status(), 200, "{shown}");
        assert!(read["ok"] == true, "Python refuses {shown}: {read}");
        let line = gateway.wait_access(&id, |line| line["request_id"] == id.as_str()).await;
        assert_eq!(line["model"], read["model"], "{shown}");
    }
    for body in &fail {
        let answer = gateway.ask(&Request::post(CHAT_PATH, body)).await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        assert_eq!(answer.status(), 400, "{shown}");
        checks::rejected(&answer, 400, "invalid_request");
    }
    let attempts: u64 = gateway
        .all_access(pass.len() + fail.len())
        .await
        .iter()
        .filter_map(|line| line["attempts"].as_u64())
        .sum();
    assert_eq!(attempts, pass.len() as u64, "what is refused reaches no engine");
}

/// What Python makes of each body, as its web frameworks read it; `None` without a Python.
fn read_by_python(bodies: &[Vec<u8>]) -> Option<Vec<Value>> {
    const READER: &str = "
import json, sys
for line in sys.stdin:
    try:
        body = json.loads(bytes.fromhex(line))
        print(json.dumps({'ok': isinstance(body, dict), 'model': body.get('model')}))
    except Exception as error:
        print(json.dumps({'ok': False, 'error': str(error)[:80]}))
";
    let mut python = Command::new("python3");
    let mut python = python.args(["-c", READER]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut input = python.stdin.take().expect("piped");
    let lines: String = bodies
        .iter()
        .map(|body| body.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n")
        .collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = python.wait_with_output().expect("python3 ends");
    writer.join().expect("no panic").expect("python3 reads");
    let text = String::from_utf8(output.stdout).expect("JSON is text");
    let read: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(read.len(), bodies.len(), "python3 reads every body");
    Some(read)
}
