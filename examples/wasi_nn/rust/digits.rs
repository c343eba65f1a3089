//! A WebAssembly guest that tells which digit a drawing is: a text of marks and blanks, of any size.
//!
//!     rustc --edition 2021 --target wasm32-wasip1 -O -o digits.wasm digits.rs     (wasm32-wasi before Rust 1.78)
//!     headrace wasm digits.wasm --alias digits=build/models/digits.hrg -- "$(cat examples/node/digit.txt)"
//!
//! The network is that of examples/node/train_digits.mjs.

use std::{env, process};

mod nn;

const SIDE: usize = 12;
const DIGITS: usize = 10;
const SHOWN: usize = 3;

fn overlap(cell: f64, from: f64, length: f64) -> f64 {
    ((cell + 1.0).min(from + length) - cell.max(from)).max(0.0)
}

/// What is drawn fills 12 x 12 numbers from 0 to 1, its proportions kept; None: nothing is.
fn normalized(text: &str) -> Option<Vec<f32>> {
    let mut marks = Vec::new();
    for (y, line) in text.split('\n').enumerate() {
        let drawn = line.chars().enumerate().filter(|&(_, mark)| mark != ' ' && mark != '.');
        marks.extend(drawn.map(|(x, _)| (x as f64, y as f64)));
    }
    let least = |of: fn(&(f64, f64)) -> f64| marks.iter().map(of).reduce(f64::min);
    let most = |of: fn(&(f64, f64)) -> f64| marks.iter().map(of).reduce(f64::max);
    let (left, top) = (least(|mark| mark.0)?, least(|mark| mark.1)?);
    let (width, height) = (most(|mark| mark.0)? - left + 1.0, most(|mark| mark.1)? - top + 1.0);
    let side = SIDE as f64;
    let scale = side / width.max(height);
    let (dx, dy) = ((side - width * scale) / 2.0, (side - height * scale) / 2.0);
    let mut image = vec![0f32; SIDE * SIDE];
    for (x, y) in &marks {
        // Each mark is spread over the cells that it covers.
        let (x, y) = (dx + (x - left) * scale, dy + (y - top) * scale);
        for (at, cell) in image.iter_mut().enumerate() {
            let (row, column) = ((at / SIDE) as f64, (at % SIDE) as f64);
            let share = overlap(column, x, scale) * overlap(row, y, scale);
            *cell = (f64::from(*cell) + share).min(1.0) as f32;
        }
    }
    Some(image)
}

fn main() {
    let drawing = env::args().nth(1).unwrap_or_default();
    let image = normalized(&drawing).unwrap_or_else(|| {
        eprintln!("digits DRAWING: a text of marks and blanks");
        process::exit(2)
    });
    let context = nn::Context::open("digits");
    context.set_input(0, nn::FP32, &[1, image.len() as u32], &image);
    context.compute();
    let found = context.numbers(0, DIGITS);
    let mut order: Vec<usize> = (0..DIGITS).collect();
    order.sort_by(|&a, &b| found[b].total_cmp(&found[a]));
    for digit in &order[..SHOWN] {
        println!("{digit}: {:.1} %", 100.0 * f64::from(found[*digit]));
    }
}
