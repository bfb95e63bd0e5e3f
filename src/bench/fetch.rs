//! One question beside the load: which models there are, a reload, what an engine has seen.

use bytes::Bytes;
use http::header::{HOST, HeaderMap};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt as _, Limited};
use tokio::time::timeout;

use super::args::Way;
use super::dial::Dialer;
use super::road::{Body, Road};
use super::target::Place;
use super::wrong::Wrong;
use crate::server::chain;

/// Most that is read of an answer: the statistics of an engine with 20,000 aborts take some 2 MiB.
const BODY_MAX: usize = 16 << 20;

/// A request, with its target in the form of either protocol.
pub(super) fn request(
    method: Method,
    place: &Place,
    http2: bool,
    headers: &HeaderMap,
    body: Bytes,
) -> Request<Body> {
    let mut request = Request::new(Body::new(body));
    *request.method_mut() = method;
    *request.headers_mut() = headers.clone();
    if http2 {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(if place.tls { http::uri::Scheme::HTTPS } else { http::uri::Scheme::HTTP });
        parts.authority = Some(place.authority.clone());
        parts.path_and_query = Some(place.path.clone());
        *request.uri_mut() = Uri::from_parts(parts).expect("scheme, authority and path are there");
        request.headers_mut().remove(HOST);
    } else {
        *request.uri_mut() = Uri::from(place.path.clone());
        let host = place.authority.as_str().parse().expect("an authority is visible ASCII");
        // One that the user names wins.
        request.headers_mut().entry(HOST).or_insert(host);
    }
    request
}

/// Asks on a connection of its own: the status and the body.
///
/// # Errors
/// There is no connection, or no whole answer in time.
pub(super) async fn fetch(
    dialer: &Dialer,
    way: &Way,
    method: Method,
    place: &Place,
    headers: &HeaderMap,
) -> Result<(u16, Bytes), Wrong> {
    let asking = async {
        let mut road = Road::open(dialer.dial(None).await?, way.http2, false).await?;
        let request = request(method, place, way.http2, headers, Bytes::new());
        let answer = road.send(request).await.map_err(|error| Wrong::failed(0, &error))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), BODY_MAX).collect().await;
        let body = body.map_err(|error| Wrong::Cut { tokens: 0, why: chain(error.as_ref()) })?;
        Ok((status, body.to_bytes()))
    };
    timeout(way.patience, asking).await.map_err(|_| Wrong::Silence(way.patience))?
}
