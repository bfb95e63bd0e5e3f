//! Traces, as a receiver of OTLP over gRPC gets them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::support;
use crate::support::keys::key;
use crate::support::sockets::Refusing;
use crate::support::wait::{SOON, ms, silence, wait_until, within};
use crate::support::wire::{self, CHAT_PATH, FINISH, Request, USAGE, event};
use crate::support::{Gateway, Settings, Upstream, checks, one_engine, two_engines};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;
use tokio::net::TcpListener;
use tonic::{Response, Status};

const CLIENTS: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A receiver of OTLP.
#[derive(Debug, Clone, Default)]
struct Receiver {
    requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.requests.lock().expect("no panic").push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Receiver {
    async fn start() -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("bound");
        (Self::on(listener), address)
    }

    fn on(listener: TcpListener) -> Self {
        let receiver = Self::default();
        let service = TraceServiceServer::new(receiver.clone());
        let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
        tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
        receiver
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().expect("no panic");
        let scopes = requests.iter().flat_map(|request| &request.resource_spans);
        scopes.flat_map(|resource| &resource.scope_spans).flat_map(|scope| scope.spans.clone()).collect()
    }

    /// Waits for the spans of so many exchanges.
    async fn wait_roots(&self, count: usize) -> Vec<Span> {
        let roots = || self.spans().iter().filter(|span| span.name.starts_with("POST ")).count();
        wait_until(&format!("{count} traces"), SOON, || roots() >= count).await;
        self.spans()
    }

    /// Everything it got, as text.
    fn text(&self) -> String {
        format!("{:?}", self.requests.lock().expect("no panic"))
    }
}

fn traced(collector: SocketAddr, sample: &str) -> impl Fn(Settings) -> Settings {
    let telemetry = json!({ "otlp": format!("http://{collector}"), "sample": sample });
    move |settings| settings.set("telemetry", telemetry.clone())
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The attributes of a span as text.
fn attributes(span: &Span) -> HashMap<&str, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(is_so) => is_so.to_string(),
        other => format!("{other:?}"),
    };
    let of = |pair: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        pair.value.as_ref().and_then(|value| value.value.as_ref()).map(text).unwrap_or_default()
    };
    span.attributes.iter().map(|pair| (pair.key.as_str(), of(pair))).collect()
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    let span = found.next().unwrap_or_else(|| panic!("no span {name}: {spans:?}"));
    assert!(found.next().is_none(), "two spans {name}");
    span
}

/// A request with secrets wherever a client can put them.
fn secretive() -> Request {
    let body = json!({ "model": "m", "stream": true, "user": "canary-user", "session_id": "canary-session",
        "messages": [{ "role": "user", "content": "canary-prompt" }] });
    Request::bare("POST", &format!("{CHAT_PATH}?key=canary-query"))
        .header("Content-Type: application/json")
        .header("Authorization: Bearer canary-key")
        .header(&format!("traceparent: {CLIENTS}"))
        .header("tracestate: vendor=1")
        .body(body.to_string())
}

#[tokio::test]
async fn a_stream_is_told_from_its_admission_to_its_last_event() {
    let (receiver, collector) = Receiver::start().await;
    let keys = json!([key("team-a", "canary-key")]);
    let adjust = |settings: Settings| {
        traced(collector, "0%")(settings).set("keys", keys).set("clusters.c.profile", "vllm")
    };
    let (gateway, mut engine) = one_engine(adjust).await;
    let mut client = gateway.send(&secretive()).await;
    let mut call = engine.call().await;
    let asked = call.request.head.clone();
    call.open().await;
    silence(ms(20)).await;
    call.chunk(event("canary-answer")).await;
    silence(ms(20)).await;
    call.chunk([FINISH, USAGE, wire::DONE].concat()).await;
    call.finish().await;
    assert_eq!(client.answer().await.status(), 200);
    let spans = receiver.wait_roots(1).await;
    let (root, attempt) = (named(&spans, "POST chat"), named(&spans, "attempt c/u1"));
    assert_eq!(hex(&root.trace_id), "0af7651916cd43dd8448eb211c80319c", "the client's trace");
    assert_eq!(hex(&root.parent_span_id), "b7ad6b7169203331", "below the client's span");
    assert_eq!(root.trace_state, "vendor=1");
    let below = format!("00-{}-{}-01", hex(&root.trace_id), hex(&attempt.span_id));
    assert_eq!(asked.get("traceparent"), Some(below.as_str()), "the engine's spans go below the attempt");
    assert_eq!(asked.get("tracestate"), Some("vendor=1"));
    for (name, parent) in
        [("admission", root), ("attempt c/u1", root), ("first token", attempt), ("stream", attempt)]
    {
        let span = named(&spans, name);
        assert_eq!(span.parent_span_id, parent.span_id, "{name}");
        assert!(
            parent.start_time_unix_nano <= span.start_time_unix_nano
                && span.start_time_unix_nano <= span.end_time_unix_nano
                && span.end_time_unix_nano <= parent.end_time_unix_nano,
            "{name} lies in its parent: {spans:?}"
        );
    }
    assert_eq!(named(&spans, "first token").end_time_unix_nano, named(&spans, "stream").start_time_unix_nano);
    assert_eq!(spans.len(), 5);
    let told = attributes(root);
    for (name, value) in [
        ("http.request.method", "POST"),
        ("url.path", CHAT_PATH),
        ("http.response.status_code", "200"),
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "vllm"),
        ("gen_ai.request.model", "m"),
        ("gen_ai.usage.input_tokens", "7"),
        ("gen_ai.usage.output_tokens", "3"),
        ("streamgate.outcome", "completed"),
        ("streamgate.key", "team-a"),
        ("streamgate.usage.source", "reported"),
    ] {
        assert_eq!(told.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(told["gen_ai.response.finish_reasons"].contains("stop"));
    let line = gateway.only_access().await;
    assert_eq!(told["streamgate.request_id"], line["request_id"].as_str().expect("an id"));
    let text = receiver.text();
    assert!(text.contains("service.name") && text.contains("streamgate"));
    assert!(!text.contains("canary"), "prompts, answers and credentials are in no span");
    gateway.wait_metric("trace_spans", &[("result", "sent")], 5.0).await;
    checks::at_rest(&gateway).await;
}

/// Each attempt has a span, the failed one with its reason; what waited has one as well.
#[tokio::test]
async fn attempts_and_waits_are_told() {
    let (receiver, collector) = Receiver::start().await;
    let (gateway, mut one, mut two) = two_engines(traced(collector, "100%")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let (call, other) = support::upstream::either(&mut one, &mut two).await;
    call.answer(wire::answer("503 Service Unavailable", &[], "busy")).await;
    other.call().await.stream("well").await;
    client.answer().await;
    let spans = receiver.wait_roots(1).await;
    let mut attempts: Vec<&Span> = spans.iter().filter(|span| span.name.starts_with("attempt ")).collect();
    attempts.sort_by_key(|span| span.start_time_unix_nano);
    let failures: Vec<Option<String>> =
        attempts.iter().map(|span| attributes(span).get("error.type").cloned()).collect();
    assert_eq!(failures, [Some("status_503".to_owned()), None]);
    assert_eq!(named(&spans, "stream").parent_span_id, attempts[1].span_id);

    let slot =
        |settings: Settings| traced(collector, "100%")(settings).set("clusters.c.backends.0.max_inflight", 1);
    let (gateway, mut engine) = one_engine(slot).await;
    let mut first = gateway.send(&Request::chat()).await;
    let call = engine.call().await;
    let mut second = gateway.send(&Request::chat()).await;
    gateway.wait_metric("queue_depth", &[("cluster", "c")], 1.0).await;
    call.stream("one").await;
    engine.call().await.stream("two").await;
    first.answer().await;
    second.answer().await;
    let spans = receiver.wait_roots(3).await;
    let queue = named(&spans, "queue");
    let root = spans.iter().find(|span| span.span_id == queue.parent_span_id).expect("its parent");
    assert_eq!(root.name, "POST chat");
}

/// What fails is marked as failed, and a client that leaves is no failure of anybody.
#[tokio::test]
async fn failures_are_marked() {
    let (receiver, collector) = Receiver::start().await;
    let (gateway, mut engine) = one_engine(traced(collector, "100%")).await;
    let client = gateway.send(&Request::chat()).await;
    let mut call = engine.call().await;
    client.close();
    call.gone().await;
    receiver.wait_roots(1).await;
    let mut client = gateway.send(&Request::chat()).await;
    engine.call().await.reset();
    client.answer().await;
    let spans = receiver.wait_roots(2).await;
    let status: Vec<i32> = spans
        .iter()
        .filter(|span| span.name == "POST chat")
        .map(|span| span.status.as_ref().map_or(0, |status| status.code))
        .collect();
    // 0 is unset, 2 an error (opentelemetry.proto.trace.v1.Status).
    assert_eq!(status, [0, 2]);
}

/// What is not traced passes the client's trace on as it came, and costs the collector nothing.
#[tokio::test]
async fn what_is_not_traced_is_not_touched() {
    let (receiver, collector) = Receiver::start().await;
    let (gateway, mut engine) = one_engine(traced(collector, "0%")).await;
    let unsampled = CLIENTS.replace("-01", "-00");
    for (request, passed) in [
        (Request::chat(), None),
        (Request::chat().header(&format!("traceparent: {unsampled}")), Some(unsampled.as_str())),
        (Request::chat().header("traceparent: nonsense"), Some("nonsense")),
    ] {
        let mut client = gateway.send(&request).await;
        let call = engine.call().await;
        assert_eq!(call.request.head.get("traceparent"), passed);
        call.stream("x").await;
        client.answer().await;
    }
    gateway.all_access(3).await;
    assert!(receiver.spans().is_empty());
}

/// A collector that is not there, or takes nothing, harms nothing; what it misses is counted and told once.
#[tokio::test]
async fn a_dead_collector_harms_nothing() {
    let dead = Refusing::start();
    let (mut gateway, mut engine) = one_engine(traced(dead.addr(), "100%")).await;
    stream(&gateway, &mut engine).await;
    gateway.wait_metric_where("lost", "trace_spans", &[("result", "lost")], |lost| lost >= 5.0).await;
    gateway.wait_log("takes no spans").await;
    // It comes, and takes those that come from now on.
    let receiver = Receiver::on(dead.listen());
    stream(&gateway, &mut engine).await;
    receiver.wait_roots(1).await;
    gateway.wait_log("takes spans again").await;
    // What waits is sent at the end.
    stream(&gateway, &mut engine).await;
    gateway.terminate();
    gateway.exit(SOON).await;
    receiver.wait_roots(2).await;
}

/// One that accepts and never answers holds up no exit.
#[tokio::test]
async fn a_silent_collector_holds_nothing_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let (mut gateway, mut engine) = one_engine(traced(silent.local_addr().expect("bound"), "100%")).await;
    for _ in 0..3 {
        stream(&gateway, &mut engine).await;
    }
    gateway.terminate();
    within("the exit", SOON, gateway.exit(SOON)).await;
    assert!(gateway.log().contains("the trace collector does not answer"), "{}", gateway.log());
}

async fn stream(gateway: &Gateway, engine: &mut Upstream) {
    let mut client = gateway.send(&Request::chat()).await;
    engine.call().await.stream("x").await;
    assert_eq!(client.answer().await.status(), 200);
}
