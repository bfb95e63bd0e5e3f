//! What a request body may ask of an engine, on one route.
//!
//! Some fields of a small request cost an engine a thousand times what others do (OWASP LLM06, unbounded
//! consumption), and some were never meant for strangers: templates, addresses, the transfer of caches.
//!
//! The one hard idea: the guard reads nothing itself. What it must know is added to what the one walk over a
//! body looks for ([`Wanted`]), for all routes together, since the route is known only after the walk; then
//! the guard of the route looks at what was found.

mod bound;
mod salt;
#[cfg(test)]
mod tests;

use bound::Bound;
pub use bound::Limits;
pub use salt::{FIELD as SALT_FIELD, salt};

use crate::openai::{Dialect, Found, Places, Pointer, Wanted};
use crate::rejection::Rejection;

/// Most entries of `denied` on one route.
pub const DENIED_MAX: usize = 64;

/// The guard of one route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    bounds: Vec<Bound>,
    schema_depth: Option<u64>,
    denied: Vec<Denied>,
}

/// A field that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Denied {
    /// As it stands in the configuration.
    text: String,
    how: How,
}

/// How a denied field is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum How {
    /// By name at any depth: its number among [`Wanted::names`].
    Name(usize),
    /// At the end of a pointer: its number among [`Wanted::pointers`].
    Pointer(usize),
}

/// An entry of `denied`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// A member of this name, wherever it stands.
    Name(String),
    /// The member at the end of a pointer, and the pointer as it is written.
    Pointer(String, Pointer),
}

impl Guard {
    /// A guard with these limits; `wanted` learns what to look for. `None` where nothing is limited or denied.
    pub fn new(limits: &Limits, denied: &[Field], wanted: &mut Wanted) -> Option<Self> {
        wanted.schemas |= limits.schema_depth.is_some();
        let bounds = bound::all(limits, &mut wanted.pointers);
        let denied: Vec<Denied> = denied.iter().map(|field| Denied::new(field, wanted)).collect();
        let guard = Self { bounds, schema_depth: limits.schema_depth, denied };
        let is_idle = guard.bounds.is_empty() && guard.schema_depth.is_none() && guard.denied.is_empty();
        (!is_idle).then_some(guard)
    }

    /// Looks at a body, of which `places` is what a walk for `wanted` found. `dialect` is its endpoint's.
    ///
    /// # Errors
    /// The first field that asks too much, or is denied.
    pub fn check(
        &self,
        body: &[u8],
        places: &Places,
        wanted: &Wanted,
        dialect: Dialect,
    ) -> Result<(), Rejection> {
        for denied in &self.denied {
            if denied.stands_in(body, places, wanted) {
                let message = format!("the field {} is not allowed here", denied.text);
                return Err(Rejection::field(message, denied.text.clone()).by("guard.denied"));
            }
        }
        for bound in &self.bounds {
            bound.check(body, places, &wanted.pointers, dialect)?;
        }
        match self.schema_depth {
            Some(most) if places.schema_depth() as u64 > most => {
                let message = format!("a JSON schema may be nested {most} levels deep here");
                Err(Rejection::invalid(message, None).by("guard.schema_depth"))
            }
            _ => Ok(()),
        }
    }
}

impl Denied {
    fn new(field: &Field, wanted: &mut Wanted) -> Self {
        match field {
            Field::Name(name) => Self { text: name.clone(), how: How::Name(wanted.names.add(name)) },
            Field::Pointer(text, pointer) => {
                Self { text: text.clone(), how: How::Pointer(wanted.pointers.add(pointer.clone())) }
            }
        }
    }

    fn stands_in(&self, body: &[u8], places: &Places, wanted: &Wanted) -> bool {
        match self.how {
            How::Name(number) => places.has_name(number),
            How::Pointer(number) => {
                matches!(places.find(body, &wanted.pointers, number), Found::Value(_))
            }
        }
    }
}
