//! `wasi_ephemeral_nn` for guests in Rust, each of which uses some of it. The rules are in docs/guests.md.
#![allow(dead_code)]

use std::{mem, process};

pub const FP32: u32 = 1;
pub const U8: u32 = 3;
pub const I64: u32 = 5;
const END_OF_SEQUENCE: u32 = 100;
/// Output 1 of context 0, which is none, tells why the last call failed.
const REASON: u32 = 1;

#[repr(C)]
struct Tensor {
    dimensions: *const u32,
    dimension_count: u32,
    kind: u32,
    data: *const u8,
    size: u32,
}

#[link(wasm_import_module = "wasi_ephemeral_nn")]
extern "C" {
    fn load_by_name(name: *const u8, size: u32, graph: *mut u32) -> u32;
    fn init_execution_context(graph: u32, context: *mut u32) -> u32;
    fn set_input(context: u32, index: u32, tensor: *const Tensor) -> u32;
    fn compute(context: u32) -> u32;
    fn get_output(context: u32, index: u32, buffer: *mut u8, capacity: u32, size: *mut u32) -> u32;
    fn compute_single(context: u32) -> u32;
    fn get_output_single(context: u32, index: u32, buffer: *mut u8, capacity: u32, size: *mut u32) -> u32;
    fn fini_single(context: u32) -> u32;
}

/// Ends the program with the reason where a call failed.
fn check(call: &str, code: u32) {
    if code == 0 {
        return;
    }
    let (mut reason, mut size) = (vec![0u8; 4096], 0u32);
    unsafe { get_output(0, REASON, reason.as_mut_ptr(), reason.len() as u32, &mut size) };
    reason.truncate(size as usize);
    eprintln!("{call} failed with {code}\n{}", String::from_utf8_lossy(&reason));
    process::exit(1);
}

/// Of a model that the host calls so.
pub struct Context(u32);

impl Context {
    pub fn open(model: &str) -> Context {
        let (mut graph, mut context) = (0, 0);
        unsafe {
            check("load_by_name", load_by_name(model.as_ptr(), model.len() as u32, &mut graph));
            check("init_execution_context", init_execution_context(graph, &mut context));
        }
        Context(context)
    }

    /// kind: the number of T.
    pub fn set_input<T>(&self, index: u32, kind: u32, shape: &[u32], elements: &[T]) {
        let tensor = Tensor {
            dimensions: shape.as_ptr(),
            dimension_count: shape.len() as u32,
            kind,
            data: elements.as_ptr() as *const u8,
            size: mem::size_of_val(elements) as u32,
        };
        check("set_input", unsafe { set_input(self.0, index, &tensor) });
    }

    pub fn set_text(&self, index: u32, text: &str) {
        self.set_input(index, U8, &[text.len() as u32], text.as_bytes());
    }

    pub fn compute(&self) {
        check("compute", unsafe { compute(self.0) });
    }

    /// At most `count` numbers of an output.
    pub fn numbers(&self, index: u32, count: usize) -> Vec<f32> {
        let (mut found, mut size) = (vec![0f32; count], 0u32);
        let room = found.as_mut_ptr() as *mut u8;
        check("get_output", unsafe { get_output(self.0, index, room, 4 * count as u32, &mut size) });
        found.truncate(size as usize / 4);
        found
    }

    /// The next piece of an answer; None: it is at its end.
    pub fn next_piece(&self) -> Option<String> {
        let (mut piece, mut size) = (vec![0u8; 65536], 0u32);
        let room = (piece.as_mut_ptr(), piece.len() as u32);
        unsafe {
            let code = compute_single(self.0);
            if code == END_OF_SEQUENCE {
                check("fini_single", fini_single(self.0));
                return None;
            }
            check("compute_single", code);
            check("get_output_single", get_output_single(self.0, 0, room.0, room.1, &mut size));
        }
        piece.truncate(size as usize);
        Some(String::from_utf8_lossy(&piece).into_owned())
    }
}
