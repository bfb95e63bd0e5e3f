//! The life of one HTTP/1.1 client connection: request after request until one side has enough.

use std::sync::Arc;
use std::time::Duration;

use pingora::apps::{HttpPersistentSettings, HttpServerApp};
use pingora::connectors::http::custom;
use pingora::protocols::Stream;
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use pingora_proxy::{HttpProxy, ProcessCustomSession, ProxyHttp};

use super::conn::Conn;

/// What Pingora calls for each connection. `keepalive` is how long an idle one is kept.
pub fn on_connection<SV, C>(keepalive: Duration) -> ProcessCustomSession<SV, C>
where
    SV: ProxyHttp + Send + Sync + 'static,
    SV::CTX: Send + Sync,
    C: custom::Connector,
{
    // Pingora counts keep-alive in whole seconds, and takes 0 for "for ever".
    let seconds = keepalive.as_millis().div_ceil(1000).max(1);
    let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
    Arc::new(move |proxy: Arc<HttpProxy<SV, C>>, stream: Stream, shutdown: &ShutdownWatch| {
        let shutdown = shutdown.clone();
        Box::pin(async move {
            serve(&proxy, Box::new(Conn::new(stream)), seconds, &shutdown).await;
            None
        })
    })
}

async fn serve<A>(app: &Arc<A>, mut stream: Stream, keepalive: u64, shutdown: &ShutdownWatch)
where
    A: HttpServerApp + Send + Sync + 'static,
{
    let mut kept: Option<HttpPersistentSettings> = None;
    loop {
        let mut session = ServerSession::new_http1(stream);
        match kept.take() {
            Some(settings) => settings.apply_to_session(&mut session),
            None => session.set_keepalive(Some(keepalive)),
        }
        if *shutdown.borrow() {
            session.set_keepalive(None);
        }
        let Some(reusable) = app.process_new_http(session, shutdown).await else { return };
        let (idle, settings) = reusable.consume();
        stream = idle;
        kept = settings;
    }
}
