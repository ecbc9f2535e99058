//! Starts the right command.

fn main() {}
