//! A component that asks the model `default` its arguments, and prints the answers piece by piece: wasi:nn 0.2 and
//! headrace:nn as the canonical ABI passes them, without a package.
//!
//!     rustc --edition 2021 --target wasm32-wasip1 -O -o module.wasm component_chat.rs     (wasm32-wasi before 1.78)
//!     node ../component_of.mjs module.wasm chat.wasm
//!     headrace wasm chat.wasm --model chat.gguf -- "What is 2+3?"

use std::alloc::{alloc, realloc, Layout};
use std::io::{stdout, Write};
use std::{env, process};

const CODES: [&str; 9] = [
    "invalid-argument",
    "invalid-encoding",
    "timeout",
    "runtime-error",
    "unsupported-operation",
    "too-large",
    "not-found",
    "security",
    "unknown",
];
const PARAMETERS: &str = r#"{"temperature": 0, "n_predict": 64}"#;

/// A handle of what was asked for, or of an error.
#[repr(C)]
#[derive(Default)]
struct Opened {
    is_error: u8,
    handle: u32,
}

#[repr(C)]
struct Text {
    bytes: *mut u8,
    size: usize,
}

/// A piece or none, whose first byte tells, or the handle of an error.
#[repr(C)]
struct Next {
    is_error: u8,
    piece_or_error: u32,
    text: Text,
}

#[link(wasm_import_module = "wasi:nn/graph@0.2.0-rc-2024-10-28")]
extern "C" {
    #[link_name = "load-by-name"]
    fn load_by_name(name: *const u8, size: usize, graph: *mut Opened);
    #[link_name = "[resource-drop]graph"]
    fn drop_graph(graph: u32);
}

#[link(wasm_import_module = "wasi:nn/errors@0.2.0-rc-2024-10-28")]
extern "C" {
    #[link_name = "[method]error.code"]
    fn code_of(error: u32) -> u32;
    #[link_name = "[method]error.data"]
    fn message_of(error: u32, message: *mut Text);
}

#[link(wasm_import_module = "headrace:nn/conversations@0.1.0")]
extern "C" {
    #[link_name = "[static]conversation.open"]
    fn open(graph: u32, has_session: u32, session: *const u8, size: usize, conversation: *mut Opened);
    #[link_name = "[method]conversation.ask"]
    fn ask(conversation: u32, prompt: *const u8, prompt_size: usize, json: *const u8, size: usize, answer: *mut Opened);
    #[link_name = "[method]answer.next"]
    fn next(answer: u32, piece: *mut Next);
    #[link_name = "[resource-drop]answer"]
    fn drop_answer(answer: u32);
    #[link_name = "[resource-drop]conversation"]
    fn drop_conversation(conversation: u32);
}

extern "C" {
    /// What is called by name is not called again by each export, as linkers before 15 have it: cabi_realloc runs when
    /// a guest may make no call.
    fn __wasm_call_ctors();
}

/// Where hosts put what they return.
///
/// # Safety
/// As of the canonical ABI: old is NULL, or has old_size bytes of this.
#[no_mangle]
pub unsafe extern "C" fn cabi_realloc(old: *mut u8, old_size: usize, alignment: usize, size: usize) -> *mut u8 {
    if size == 0 {
        return alignment as *mut u8;
    }
    let of = |bytes| Layout::from_size_align_unchecked(bytes, alignment);
    let made = if old_size == 0 { alloc(of(size)) } else { realloc(old, of(old_size), size) };
    if made.is_null() {
        process::abort();
    }
    made
}

/// What the host put into memory of cabi_realloc.
unsafe fn taken(text: Text) -> String {
    if text.size == 0 {
        return String::new();
    }
    String::from_utf8_lossy(&Vec::from_raw_parts(text.bytes, text.size, text.size)).into_owned()
}

unsafe fn fail(error: u32) -> ! {
    let mut message = Text { bytes: std::ptr::null_mut(), size: 0 };
    message_of(error, &mut message);
    eprintln!("{}: {}", CODES[code_of(error) as usize], taken(message));
    process::exit(1)
}

/// The handle that a call gave.
unsafe fn handle(call: impl FnOnce(*mut Opened)) -> u32 {
    let mut opened = Opened::default();
    call(&mut opened);
    if opened.is_error != 0 {
        fail(opened.handle);
    }
    opened.handle
}

/// None: the answer is at its end.
unsafe fn next_piece(answer: u32) -> Option<String> {
    let mut told = Next { is_error: 0, piece_or_error: 0, text: Text { bytes: std::ptr::null_mut(), size: 0 } };
    next(answer, &mut told);
    if told.is_error != 0 {
        fail(told.piece_or_error);
    }
    (told.piece_or_error & 0xff != 0).then(|| taken(told.text))
}

fn main() {
    let name = "default";
    unsafe {
        __wasm_call_ctors();
        let graph = handle(|made| load_by_name(name.as_ptr(), name.len(), made));
        let conversation = handle(|made| open(graph, 0, std::ptr::null(), 0, made));
        drop_graph(graph); // the conversation goes on
        for prompt in env::args().skip(1) {
            println!("> {prompt}");
            let (json, size) = (PARAMETERS.as_ptr(), PARAMETERS.len());
            let answer = handle(|made| ask(conversation, prompt.as_ptr(), prompt.len(), json, size, made));
            while let Some(piece) = next_piece(answer) {
                print!("{piece}");
                stdout().flush().expect("the answer's reader went away");
            }
            println!();
            drop_answer(answer);
        }
        drop_conversation(conversation);
    }
}
