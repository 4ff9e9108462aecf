//! Rivals written in Rust, for rust.c, which holds their tables.

mod queues;
mod reads;
