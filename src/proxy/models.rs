//! `GET /v1/models`: the models that the routes say they serve, in OpenAI's form.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::respond::Reply;
use crate::config::Route;
use crate::rejection::Rejection;

const PATH: &str = "/v1/models";
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// Answers a path that no route has: the list, one model of it, or `404`.
pub(super) fn reply(routes: &[Arc<Route>], method: &str, path: &str) -> Result<Reply, Rejection> {
    let wanted = match path.strip_prefix(PATH) {
        Some("") => None,
        Some(rest) => Some(rest.strip_prefix('/').ok_or(Rejection::NotFound)?),
        None => return Err(Rejection::NotFound),
    };
    match method {
        "GET" | "HEAD" => {}
        "OPTIONS" => return Ok(Reply::options(ALLOW.into())),
        _ => return Err(Rejection::MethodNotAllowed { allow: ALLOW.into() }),
    }
    let names: BTreeSet<&str> = routes.iter().flat_map(|route| &route.models).map(String::as_str).collect();
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
