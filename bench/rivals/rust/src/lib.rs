//! Rivals written in Rust. Their tables are in rust.c.

mod queues;
mod reads;
