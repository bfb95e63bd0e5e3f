//! What a cluster makes of the head of a request, whoever asks: a client, or the gateway itself.

use http::HeaderMap;

use crate::config::Auth;
use crate::header_rules::Rules;

/// What the cluster removes and sets: after all that was said before, before all that we assert.
pub fn apply(headers: &mut HeaderMap, rules: &Rules) {
    for name in &rules.remove {
        headers.remove(name);
    }
    for (name, value) in &rules.set {
        headers.insert(name.clone(), value.clone());
    }
}

/// The gateway's own credentials, where the cluster has some.
pub fn authorize(headers: &mut HeaderMap, auth: &Auth) {
    if let Auth::Own(own) = auth {
        headers.insert(own.header.clone(), own.value.header_value().clone());
    }
}
