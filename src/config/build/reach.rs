//! Routes that are never reached, since an earlier one takes all that they would.

use std::collections::HashMap;

use crate::config::Route;
use crate::config::place::At;

/// Finds routes that an earlier one leaves nothing to.
#[derive(Default)]
pub(super) struct Reach {
    /// Path -> methods of each earlier route that takes every model and header on it; no methods = the default.
    taken: HashMap<String, Vec<Vec<String>>>,
}

impl Reach {
    /// Warns of a route that the earlier ones leave nothing to, and remembers what it takes itself.
    pub(super) fn check(&mut self, route: &Route, at: &At<'_>) {
        if !route.paths.is_empty() && route.paths.iter().all(|path| self.is_taken(path, &route.methods)) {
            at.warning(
                "never reached: an earlier route takes its paths, whatever the model",
                "give the earlier route a match.model, such as \"qwen*\", or move this one up",
            );
        }
        if route.model.is_none() && route.headers.is_empty() {
            for path in &route.paths {
                self.taken.entry(path.clone()).or_default().push(route.methods.clone());
            }
        }
    }

    fn is_taken(&self, path: &str, methods: &[String]) -> bool {
        let parent = path.rfind('/').map(|end| format!("{}/*", &path[..end]));
        let earlier =
            [Some(path.to_owned()), parent].into_iter().flatten().filter_map(|path| self.taken.get(&path));
        earlier.flatten().any(|taken| covers(taken, methods))
    }
}

/// Whether a route with the methods `taken` leaves none of `methods`. Empty is GET and POST.
fn covers(taken: &[String], methods: &[String]) -> bool {
    let default = ["GET".to_owned(), "POST".to_owned()];
    let taken = if taken.is_empty() { &default[..] } else { taken };
    let methods = if methods.is_empty() { &default[..] } else { methods };
    methods.iter().all(|method| taken.contains(method))
}
