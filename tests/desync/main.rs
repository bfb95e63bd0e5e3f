//! Requests that two readers could take for different ones, as data, in front of origins with parsers of their own.
//!
//! Each file of `corpus/` holds byte-level requests. A case says what its client must see: the statuses of all
//! answers in their order, and what becomes of the connection. The engine answers 200 and nobody else does, so
//! the number of 200s is the number of requests that an origin may see. One more is a smuggled one; it would
//! also have `smuggled` in its target, or be none that a client of the case sent whole.
//!
//! ```text
//! = NAME | STATUS ... or - for none | open, closed, or waits for more
//! lines, each of which ends in CR LF, unless its last character is a backslash
//! ```
//!
//! In a line `\r \n \t \0 \\ \xNN` are bytes, and `\{9000*a}` is a run of them. Lines at the top that begin with
//! `#` are comments.

#[path = "../support/mod.rs"]
mod support;

mod chain;
mod corpus;
mod h1;
mod h2;
mod origin;
