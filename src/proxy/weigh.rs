//! What the choice of a backend needs to know of a request: its cost, and what it sticks by.

use super::exchange::Exchange;
use super::peek::inline_if_small;
use crate::cluster::affinity::{Chain, Keys, session_key};
use crate::cluster::load::Work;
use crate::config::AffinityBy;
use crate::openai::request::Peek;
use crate::openai::{self, Dialect};
use crate::rejection::Rejection;
use crate::upstream::Body;

/// What is known of the work that the request asks for.
pub(super) fn work(path: &str, peek: Option<&Peek>, body: &Body) -> Work {
    Work {
        body_bytes: body.bytes.len() as u64,
        generates: Dialect::of(path) != Dialect::Other,
        tokens_max: peek.and_then(Peek::tokens_max),
        answers: peek.and_then(Peek::answers),
    }
}

/// The keys of what the request sticks by: the first that its cluster names and it has. The body is read for
/// them only where a prompt is asked for.
pub(super) async fn keys(exchange: &Exchange, is_json: bool, body: &Body) -> Result<Keys, Rejection> {
    let Some(cluster) = &exchange.cluster else { return Ok(Keys::new()) };
    let (model, session) = (exchange.request.model.as_deref(), exchange.request.session.id.as_deref());
    let owner = exchange.key.as_ref().map(|key| &*key.name);
    for by in cluster.sticks_by() {
        match (by, session) {
            (AffinityBy::Session, Some(id)) => {
                return Ok(session_key(&cluster.config.name, model, owner, id));
            }
            (AffinityBy::Prefix, _) if is_json => {
                let chain = Chain::new(&cluster.config.name, model, owner);
                let bytes = body.bytes.clone();
                let keys = inline_if_small(bytes.len(), move || prefix(chain, &bytes)).await?;
                if !keys.is_empty() {
                    return Ok(keys);
                }
            }
            _ => {}
        }
    }
    Ok(Keys::new())
}

fn prefix(mut chain: Chain, body: &[u8]) -> Keys {
    openai::prompt(body).for_each(|piece| chain.push(piece));
    chain.keys()
}
