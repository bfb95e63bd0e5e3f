//! Where a request gets its connection from: a new one each time, or with `--keepalive` one that is there.

use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2;

use super::args::Way;
use super::dial::Dialer;
use super::road::{Body, Driver, Road};
use super::wrong::Wrong;

/// Requests that share a connection of HTTP/2: no more than servers allow by custom.
const SHARING: usize = 100;

/// The connections to one place.
pub(super) struct Roads {
    dialer: Dialer,
    http2: bool,
    keepalive: bool,
    /// Connections of HTTP/1.1 between two requests.
    idle: Mutex<Vec<Road>>,
    /// Those of HTTP/2. Locked while one is dialled, so that requests which begin together share it.
    shared: tokio::sync::Mutex<Vec<Shared>>,
}

/// A connection that several requests are on: its driver knows how many.
type Shared = (http2::SendRequest<Body>, Arc<Driver<()>>);

impl Roads {
    pub(super) fn new(dialer: Dialer, way: &Way) -> Self {
        let (idle, shared) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { dialer, http2: way.http2, keepalive: way.keepalive, idle, shared }
    }

    /// Sends a request, read at a rate of bytes a second if one is given.
    ///
    /// # Errors
    /// There is no connection, or it failed. One that had been kept and was closed before it took the request is
    /// none: closing it is anybody's right.
    pub(super) async fn send(
        &self,
        request: &Request<Body>,
        rate: Option<u32>,
    ) -> Result<(Response<Incoming>, Road), Wrong> {
        // A slow reader has a connection of its own.
        if self.keepalive && rate.is_none() {
            let mut road = self.kept().await?;
            match road.send(request.clone()).await {
                Ok(response) => return Ok((response, road)),
                Err(error) if error.is_canceled() => {}
                Err(error) => return Err(Wrong::failed(0, &error)),
            }
        }
        let mut road = self.dial(rate).await?;
        let response = road.send(request.clone()).await.map_err(|error| Wrong::failed(0, &error))?;
        Ok((response, road))
    }

    /// An answer has been read whole on it.
    ///
    /// # Errors
    /// Something came behind the answer.
    pub(super) async fn give_back(&self, road: Road, rate: Option<u32>) -> Result<(), Wrong> {
        if self.http2 || !self.keepalive || rate.is_some() {
            return road.close().await;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(road);
        Ok(())
    }

    /// A connection of its own.
    ///
    /// # Errors
    /// There is none to be had.
    pub(super) async fn dial(&self, rate: Option<u32>) -> Result<Road, Wrong> {
        Road::open(self.dialer.dial(rate).await?, self.http2, rate.is_some()).await
    }

    async fn kept(&self) -> Result<Road, Wrong> {
        if self.http2 {
            return self.share().await;
        }
        let next = || self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(mut road) = next() {
            if road.is_ready().await {
                return Ok(road);
            }
        }
        self.dial(None).await
    }

    async fn share(&self) -> Result<Road, Wrong> {
        let mut shared = self.shared.lock().await;
        shared.retain(|(sender, _)| !sender.is_closed());
        // The list itself holds each driver once.
        let free = shared.iter().find(|(_, driver)| Arc::strong_count(driver) <= SHARING);
        if let Some((sender, driver)) = free {
            return Ok(Road::Two { sender: sender.clone(), driver: Arc::clone(driver) });
        }
        let road = self.dial(None).await?;
        if let Road::Two { sender, driver } = &road {
            shared.push((sender.clone(), Arc::clone(driver)));
        }
        Ok(road)
    }
}
