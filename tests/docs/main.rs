//! The documents: what they say of settings, names and files is so, and their links lead somewhere.
//!
//! No gateway runs here: documents are held against the schema, the configuration as it is read, and each
//! other. `UPDATE_GOLDEN=1` writes the reference of the settings anew.

mod defaults;
mod examples;
mod links;
mod names;
mod reference;
mod settings;
mod text;
mod twins;
