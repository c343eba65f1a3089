//! A WebAssembly guest that asks the model `default` its arguments, and prints the answers piece by piece.
//!
//!     rustc --edition 2021 --target wasm32-wasip1 -O -o chat.wasm chat.rs     (wasm32-wasi before Rust 1.78)
//!     headrace wasm chat.wasm --model chat.gguf -- "What is 2+3?"

use std::env;
use std::io::{stdout, Write};

mod nn;

const PROMPT: u32 = 0;
const PARAMETERS: u32 = 1;

fn main() {
    let context = nn::Context::open("default");
    context.set_text(PARAMETERS, r#"{"temperature": 0, "n_predict": 64}"#);
    for question in env::args().skip(1) {
        println!("> {question}");
        context.set_text(PROMPT, &question);
        while let Some(piece) = context.next_piece() {
            print!("{piece}");
            stdout().flush().expect("the answer's reader went away");
        }
        println!();
    }
}
