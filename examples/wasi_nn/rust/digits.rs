//! A WebAssembly guest that tells which digit a drawing is: a text of marks and blanks, of any size.
//!
//!     rustc --edition 2021 --target wasm32-wasip1 -O -o digits.wasm digits.rs     (wasm32-wasi before Rust 1.78)
//!     headrace wasm digits.wasm --alias digits=build/models/digits.hrg -- "$(cat examples/node/digit.txt)"
//!
//! The network is that of examples/node/train_digits.mjs.

use std::{env, process};

const SIDE: usize = 12;
const DIGITS: usize = 10;
const SHOWN: usize = 3;
const FP32: u32 = 1;
/// Output 1 of context 0, which is none, tells why the last call failed.
const REASON: u32 = 1;

#[repr(C)]
struct Tensor {
    dimensions: *const u32,
    dimension_count: u32,
    kind: u32,
    data: *const f32,
    size: u32,
}

#[link(wasm_import_module = "wasi_ephemeral_nn")]
extern "C" {
    fn load_by_name(name: *const u8, size: u32, graph: *mut u32) -> u32;
    fn init_execution_context(graph: u32, context: *mut u32) -> u32;
    fn set_input(context: u32, index: u32, tensor: *const Tensor) -> u32;
    fn compute(context: u32) -> u32;
    fn get_output(context: u32, index: u32, buffer: *mut u8, capacity: u32, size: *mut u32) -> u32;
}

/// Ends the program with the reason where a call failed.
fn check(call: &str, code: u32) {
    if code == 0 {
        return;
    }
    let (mut reason, mut size) = (vec![0u8; 4096], 0u32);
    unsafe { get_output(0, REASON, reason.as_mut_ptr(), reason.len() as u32, &mut size) };
    reason.truncate(size as usize);
    eprintln!("digits: {call} failed with {code}\n{}", String::from_utf8_lossy(&reason));
    process::exit(1);
}

fn probabilities(image: &[f32]) -> Vec<f32> {
    let shape = [1, image.len() as u32];
    let tensor = Tensor {
        dimensions: shape.as_ptr(),
        dimension_count: 2,
        kind: FP32,
        data: image.as_ptr(),
        size: 4 * image.len() as u32,
    };
    let (name, mut graph, mut context, mut size) = ("digits", 0, 0, 0);
    let mut output = vec![0f32; DIGITS];
    let room = output.as_mut_ptr() as *mut u8;
    unsafe {
        check("load_by_name", load_by_name(name.as_ptr(), name.len() as u32, &mut graph));
        check("init_execution_context", init_execution_context(graph, &mut context));
        check("set_input", set_input(context, 0, &tensor));
        check("compute", compute(context));
        check("get_output", get_output(context, 0, room, 4 * DIGITS as u32, &mut size));
    }
    output
}

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
    let found = probabilities(&image);
    let mut order: Vec<usize> = (0..DIGITS).collect();
    order.sort_by(|&a, &b| found[b].total_cmp(&found[a]));
    for digit in &order[..SHOWN] {
        println!("{digit}: {:.1} %", 100.0 * f64::from(found[*digit]));
    }
}
