//! `GET /v1/models`: the models that the routes say they serve, in OpenAI's form.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::respond::Reply;
use crate::config::{Key, Route};
use crate::rejection::Rejection;

const PATH: &str = "/v1/models";
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// Whether a path that no route has is answered here.
pub(super) fn is_at(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The methods that such a path takes.
pub(super) fn options() -> Reply {
    Reply::options(ALLOW.into())
}

/// Answers a path that no route has: the list, one model of it, or `404`. What the key may not use is not there.
pub(super) fn reply(
    routes: &[Arc<Route>],
    key: Option<&Key>,
    method: &str,
    path: &str,
) -> Result<Reply, Rejection> {
    let wanted = match path.strip_prefix(PATH) {
        Some("" | "/") => None,
        Some(rest) => Some(rest.strip_prefix('/').ok_or(Rejection::NotFound)?),
        None => return Err(Rejection::NotFound),
    };
    match method {
        "GET" | "HEAD" => {}
        _ => return Err(Rejection::MethodNotAllowed { allow: ALLOW.into() }),
    }
    let all = routes.iter().flat_map(|route| &route.models).map(String::as_str);
    let names: BTreeSet<&str> = all.filter(|name| key.is_none_or(|key| key.may_use(Some(name)))).collect();
    let answer = match wanted {
        None => json!({ "object": "list", "data": names.into_iter().map(model).collect::<Vec<_>>() }),
        Some(name) if names.contains(name) => model(name),
        Some(name) => return Err(Rejection::ModelNotFound { model: Some(name.chars().take(256).collect()) }),
    };
    Ok(Reply::new(200, "application/json", answer.to_string().into_bytes().into()))
}

fn model(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": 0, "owned_by": "streamgate" })
}
