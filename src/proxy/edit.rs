//! Changes to a JSON body: usage asked for, the model's alias, the session id, the salt of its key. All are made in
//! one copy.
//!
//! What is changed may depend on the cluster, as not every engine is to be asked for usage. Where the clusters of
//! a route differ in it, the body is kept as it came and edited anew for each that is tried.

use std::sync::Arc;

use super::exchange::Exchange;
use super::peek::inline_if_small;
use super::session;
use super::shared::Shared;
use crate::cluster::Cluster;
use crate::config::Route;
use crate::guard::{self, SALT_FIELD};
use crate::openai::patch::{self, Edits, Unasked};
use crate::openai::profiles::{self, UsageFrame};
use crate::openai::request::Peek;
use crate::openai::{Dialect, Found};
use crate::rejection::Rejection;
use crate::upstream::Body;

/// A body as it came, for as long as a cluster may want it edited in another way.
pub(super) struct Draft {
    body: Body,
    peek: Peek,
    /// The hop that the exchange's body was made for.
    made_for: Option<usize>,
}

/// Makes the body of the exchange, or notes that it depends on the cluster.
pub(super) async fn prepare(
    route: &Route,
    peek: Option<Peek>,
    exchange: &mut Exchange,
    mut body: Body,
) -> Result<(), Rejection> {
    if let Some(peek) = peek {
        let (first, is_one_for_all) = {
            let mut wanted = exchange.clusters().map(|cluster| Wants::of(route, exchange, &cluster));
            let first = wanted.next().unwrap_or_default();
            (first, wanted.all(|wanted| wanted == first))
        };
        if is_one_for_all {
            if let Some(edits) = edits(route, first, &peek, exchange, &body)? {
                body.bytes = apply(edits, &body).await?;
            }
        } else {
            exchange.draft = Some(Box::new(Draft { body: body.clone(), peek, made_for: None }));
        }
    }
    exchange.request.body = Some(body);
    Ok(())
}

/// Makes the body anew where it was made for another cluster.
///
/// # Errors
/// There is no room for both.
pub(super) async fn for_cluster(shared: &Shared, exchange: &mut Exchange) -> Result<(), Rejection> {
    if exchange.draft.as_ref().is_none_or(|draft| draft.made_for == Some(exchange.hop)) {
        return Ok(());
    }
    let (Some(mut draft), Some(route)) = (exchange.draft.take(), exchange.route.clone()) else {
        return Ok(());
    };
    let wanted = exchange.cluster.as_ref().map(|cluster| Wants::of(&route, exchange, cluster));
    let mut body = draft.body.clone();
    if let Some(edits) = edits(&route, wanted.unwrap_or_default(), &draft.peek, exchange, &body)? {
        body.bytes = apply(edits, &body).await?;
        let mut held = shared.ledger.open();
        if !held.grow(body.bytes.len() as u64) {
            return Err(Rejection::Overloaded);
        }
        body.held = Arc::new(held);
    }
    draft.made_for = Some(exchange.hop);
    exchange.draft = Some(draft);
    exchange.request.body = Some(body);
    Ok(())
}

async fn apply(edits: Edits, body: &Body) -> Result<bytes::Bytes, Rejection> {
    let bytes = body.bytes.clone();
    inline_if_small(bytes.len(), move || edits.apply(&bytes)).await
}

/// What depends on the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Wants {
    /// The usage of the request is to be asked for.
    usage: bool,
    /// And with each event what has been used so far.
    running: bool,
    /// Its prompt is to be salted.
    salt: bool,
}

impl Wants {
    fn of(route: &Route, exchange: &Exchange, cluster: &Cluster) -> Self {
        // vLLM's other endpoints have no such field.
        let has_salt = Dialect::of(&exchange.request.path) != Dialect::Other;
        let usage = wants_usage(route, exchange, cluster);
        Self {
            usage,
            running: usage && cluster.config.continuous_usage,
            salt: cluster.config.salts && has_salt && exchange.key.is_some(),
        }
    }
}

/// Every change to the body; `None` for none.
fn edits(
    route: &Route,
    wants: Wants,
    peek: &Peek,
    exchange: &mut Exchange,
    body: &Body,
) -> Result<Option<Edits>, Rejection> {
    let mut edits = Edits::default();
    exchange.request.unasked = match wants.usage {
        true => patch::ask_for_usage(&mut edits, peek, wants.running),
        false => Unasked::default(),
    };
    let alias = peek.model.as_ref().and_then(|model| Some((model, route.aliases.get(&model.value)?)));
    if let Some((model, alias)) = alias {
        edits.replace(model.span.clone(), &alias.as_str().into());
    }
    session::to_body(&mut edits, exchange, peek, body);
    if wants.salt {
        salt(&mut edits, exchange, peek, body)?;
    }
    Ok((!edits.is_empty()).then_some(edits))
}

/// Puts the salt of the exchange's key into the body, over one of the client's own, which it is made of as well.
fn salt(edits: &mut Edits, exchange: &Exchange, peek: &Peek, body: &Body) -> Result<(), Rejection> {
    let wanted = &exchange.snapshot.wanted;
    let (Some(key), Some(number)) = (&exchange.key, wanted.salt) else { return Ok(()) };
    match peek.places.find(&body.bytes, &wanted.pointers, number) {
        Found::Value(span) => {
            let own: String = serde_json::from_slice(&body.bytes[span.clone()])
                .map_err(|_| Rejection::invalid("the field cache_salt must be a string", Some(SALT_FIELD)))?;
            edits.replace(span, &guard::salt(key, Some(&own)).into());
        }
        Found::Nothing { within, names } => edits.add(within, names, guard::salt(key, None).into()),
        Found::Blocked => {}
    }
    Ok(())
}

/// Whether the usage of this request is to be asked for at this cluster: it streams, its endpoint knows the
/// option, and the engine would not tell it anyway.
fn wants_usage(route: &Route, exchange: &Exchange, cluster: &Cluster) -> bool {
    let request = &exchange.request;
    route.include_usage
        && request.streaming
        && Dialect::of(&request.path).has_stream_options()
        && profiles::of(cluster.config.profile).usage == UsageFrame::Asked
}
