//! The way of spans to a collector (OTLP over gRPC), which may be slow, down or not there at all.
//!
//! Nobody waits for it: spans go through a bounded channel to a task of their own, and what finds no room or is not
//! taken is lost and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use parking_lot::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Exchanges whose spans may wait: a few megabytes.
const WAITING_MAX: usize = 4096;
/// Exchanges whose spans are sent at once.
const BATCH: usize = 256;
/// A batch waits so long for others to join it.
const GATHER: Duration = Duration::from_millis(500);
/// A batch that the collector has not taken by then is lost.
const EXPORT_MAX: Duration = Duration::from_secs(5);

/// Spans by what became of them.
#[derive(Debug, Default)]
pub struct Counts {
    sent: AtomicU64,
    lost: AtomicU64,
}

impl Counts {
    /// Spans that the collector took.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Spans that it did not take, or for which there was no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Where spans go.
#[derive(Debug)]
pub struct Collector {
    sender: Mutex<Option<Sender<Vec<SpanData>>>>,
    task: Mutex<Option<JoinHandle<()>>>,
    counts: Arc<Counts>,
}

impl Collector {
    /// One that takes spans to `endpoint`, a URL. It need not be there yet. To be called on a runtime of tokio.
    ///
    /// # Errors
    /// The endpoint is no URL.
    pub fn start(endpoint: &str) -> Result<Self, ExporterBuildError> {
        let mut exporter =
            SpanExporter::builder().with_tonic().with_endpoint(endpoint).with_timeout(EXPORT_MAX).build()?;
        // As the conventions want it, OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are heard.
        let named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
        let builder = Resource::builder();
        let builder = if named { builder } else { builder.with_service_name("streamgate") };
        exporter.set_resource(&builder.build());
        let (sender, spans) = channel(WAITING_MAX);
        let counts = Arc::new(Counts::default());
        let task =
            Export { exporter, counts: Arc::clone(&counts), endpoint: endpoint.to_owned(), is_up: true };
        let task = tokio::spawn(task.run(spans));
        Ok(Self { sender: Mutex::new(Some(sender)), task: Mutex::new(Some(task)), counts })
    }

    /// Has the spans of an exchange sent, or loses them when too many wait.
    pub fn send(&self, spans: Vec<SpanData>) {
        let count = spans.len() as u64;
        let is_taken = self.sender.lock().as_ref().is_some_and(|sender| sender.try_send(spans).is_ok());
        if !is_taken {
            self.counts.lost.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// What has become of spans so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Takes no more and sends what waits, but tries no longer than `patience`.
    pub async fn close(&self, patience: Duration) {
        self.sender.lock().take();
        let task = self.task.lock().take();
        if let Some(task) = task
            && timeout(patience, task).await.is_err()
        {
            log::warn!("the trace collector does not answer: the last spans are lost");
        }
    }
}

/// The task that sends.
struct Export {
    exporter: SpanExporter,
    counts: Arc<Counts>,
    endpoint: String,
    is_up: bool,
}

impl Export {
    async fn run(mut self, mut spans: Receiver<Vec<SpanData>>) {
        let mut batch = Vec::new();
        while spans.recv_many(&mut batch, BATCH).await > 0 {
            // Without a wait each exchange would be a call of its own. A closed channel has no more to come.
            let gathering =
                async { while batch.len() < BATCH && spans.recv_many(&mut batch, BATCH).await > 0 {} };
            // Over in any case.
            drop(timeout(GATHER, gathering).await);
            self.export(std::mem::take(&mut batch).into_iter().flatten().collect()).await;
        }
    }

    async fn export(&mut self, spans: Vec<SpanData>) {
        let count = spans.len() as u64;
        let sent = timeout(EXPORT_MAX, self.exporter.export(spans)).await;
        let failure = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer in {EXPORT_MAX:?}")),
        };
        let counter = if failure.is_none() { &self.counts.sent } else { &self.counts.lost };
        counter.fetch_add(count, Ordering::Relaxed);
        self.tell(failure);
    }

    /// Says when the collector goes and when it comes back, and not in between.
    fn tell(&mut self, failure: Option<String>) {
        let was_up = std::mem::replace(&mut self.is_up, failure.is_none());
        match failure {
            Some(why) if was_up => log::warn!(
                "the trace collector {} takes no spans ({why}); they are lost until it does",
                self.endpoint
            ),
            None if !was_up => log::info!("the trace collector {} takes spans again", self.endpoint),
            _ => {}
        }
    }
}
