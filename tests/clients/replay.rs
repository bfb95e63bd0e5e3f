//! An engine that replays recorded streams. The model's name says which file of `tests/golden`, and how
//! it ends: `vllm-messages`, or `vllm-messages@cut=4` to close in the middle of the event after the fourth.
//!
//! | | |
//! |---|---|
//! | `cut=N` | N events and a part of the next, then FIN |
//! | `stall=N` | N events, then silence |
//! | `endless=N` | N events, the last of them over and over |
//! | `status=N` | an error answer of the engine's own |

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::wait::{ms, silence};
use crate::support::{Call, Upstream, wire};

/// A running engine.
pub(crate) struct Replay {
    pub(crate) addr: SocketAddr,
    cancelled: Arc<AtomicUsize>,
}

impl Replay {
    pub(crate) async fn start() -> Self {
        let upstream = Upstream::start().await;
        let addr = upstream.addr;
        let cancelled = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&cancelled);
        upstream.each(move |call| serve(call, Arc::clone(&count)));
        Self { addr, cancelled }
    }

    /// Endless streams that were left.
    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

async fn serve(mut call: Call, cancelled: Arc<AtomicUsize>) {
    let asked: Value = serde_json::from_slice(&call.request.body).unwrap_or_default();
    let model = asked["model"].as_str().unwrap_or_default();
    let (name, end) = model.split_once('@').unwrap_or((model, "whole=0"));
    let (end, number) = end.split_once('=').unwrap();
    let number: usize = number.parse().unwrap();
    if end == "status" {
        let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "busy" } });
        return call.answer(wire::answer(&format!("{number} Busy"), &JSON, error.to_string())).await;
    }
    let stream = std::fs::read_to_string(crate::folder("golden").join(format!("{name}.sse"))).unwrap();
    let events: Vec<&str> = stream.split_inclusive("\n\n").collect();
    if asked["stream"] != true {
        let whole = if call.request.head.line.contains("/count_tokens") {
            json!({ "input_tokens": 7 })
        } else {
            whole(&events)
        };
        return call.answer(wire::json_answer(&whole.to_string())).await;
    }
    call.open().await;
    if end == "whole" {
        call.chunk(&stream).await;
        return call.finish().await;
    }
    call.chunk(events[..number].concat()).await;
    match end {
        "cut" => {
            call.chunk(&events[number][..10]).await;
            call.close();
        }
        "stall" => {
            call.gone().await;
        }
        "endless" => {
            while call.try_send(wire::chunk(events[number - 1])).await.is_ok() {
                silence(ms(5)).await;
            }
            cancelled.fetch_add(1, Ordering::SeqCst);
        }
        other => panic!("no such end: {other}"),
    }
}

const JSON: [&str; 1] = ["Content-Type: application/json"];

/// The whole answer that a stream adds up to.
fn whole(events: &[&str]) -> Value {
    let data = |event: &&str| serde_json::from_str(event.split_once("data: ")?.1).ok();
    let data: Vec<Value> = events.iter().filter_map(data).collect();
    if let Some(response) = data.last().and_then(|last| last.get("response")) {
        return response.clone();
    }
    let mut message = Value::Null;
    let mut json = String::new();
    for event in data {
        let index = event["index"].as_u64().unwrap_or(0) as usize;
        match event["type"].as_str().unwrap() {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                message["content"].as_array_mut().unwrap().push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let block = &mut message["content"][index];
                for (name, piece) in event["delta"].as_object().unwrap() {
                    match name.as_str() {
                        "text" | "thinking" => {
                            let text = block[name].as_str().unwrap_or_default().to_owned();
                            block[name] = (text + piece.as_str().unwrap()).into();
                        }
                        "partial_json" => {
                            json += piece.as_str().unwrap();
                            block["input"] = serde_json::from_str(&json).unwrap_or_default();
                        }
                        _ => {}
                    }
                }
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    message
}
