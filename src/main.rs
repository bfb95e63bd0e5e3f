//! The `streamgate` binary.

fn main() {}
