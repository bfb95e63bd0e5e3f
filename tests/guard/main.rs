//! What a body may ask ([`limits`]), and what a JSON body must be ([`json`]), and what is put into it ([`salt`]).

#[path = "../support/mod.rs"]
mod support;

mod json;
mod limits;
mod salt;
