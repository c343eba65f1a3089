//! A WebAssembly guest that searches by meaning: finds the lines of its standard input that are nearest to each of its
//! arguments. The vectors are MiniLM's, an ONNX model that its host calls `minilm`; the words of its tokenizer are in
//! /minilm/vocab.txt, a folder that the host gives it. Letters with accents are taken as they are written.
//!
//!     rustc --edition 2021 --target wasm32-wasip1 -O -o search.wasm search.rs     (wasm32-wasi before Rust 1.78)
//!     headrace wasm search.wasm --alias minilm=minilm.onnx --dir FOLDER::/minilm -- "dearer every day" < lines.txt

use std::collections::HashMap;
use std::io::{stdin, BufRead};
use std::{env, fs};

mod nn;

const WIDTH: usize = 384;
const SHOWN: usize = 2;

/// BERT's tokenizer of lower case: words, and the longest known pieces of each.
struct WordPieces(HashMap<String, i64>);

impl WordPieces {
    fn read(path: &str) -> WordPieces {
        let text = fs::read_to_string(path).expect("the host gives the tokenizer's words as /minilm/vocab.txt");
        WordPieces(text.lines().zip(0..).map(|(word, number)| (word.to_string(), number)).collect())
    }

    fn tokens(&self, text: &str) -> Vec<i64> {
        let mut found = vec![self.0["[CLS]"]];
        let mut word = String::new();
        for letter in text.to_lowercase().chars() {
            if letter.is_alphanumeric() || letter == '_' {
                word.push(letter);
                continue;
            }
            found.extend(self.pieces(&word));
            word.clear();
            if !letter.is_whitespace() {
                found.extend(self.pieces(&letter.to_string()));
            }
        }
        found.extend(self.pieces(&word));
        found.push(self.0["[SEP]"]);
        found
    }

    fn pieces(&self, word: &str) -> Vec<i64> {
        let (mut pieces, mut start) = (Vec::new(), 0);
        while start < word.len() {
            let begin = if start > 0 { "##" } else { "" };
            let known = |end: &usize| self.0.get(&format!("{begin}{}", &word[start..*end]));
            let ends = (start + 1..=word.len()).rev().filter(|&end| word.is_char_boundary(end));
            match ends.into_iter().find(|end| known(end).is_some()) {
                Some(end) => {
                    pieces.push(*known(&end).unwrap());
                    start = end;
                }
                None => return vec![self.0["[UNK]"]],
            }
        }
        pieces
    }
}

fn vector(text: &str, words: &WordPieces, context: &nn::Context) -> Vec<f32> {
    let tokens = words.tokens(text);
    let shape = [1, tokens.len() as u32];
    context.set_input(0, nn::I64, &shape, &tokens);
    context.set_input(1, nn::I64, &shape, &vec![1i64; tokens.len()]);
    context.compute();
    context.numbers(0, WIDTH)
}

fn main() {
    let words = WordPieces::read("/minilm/vocab.txt");
    let context = nn::Context::open("minilm");
    let lines = stdin().lock().lines().map(|line| line.expect("the lines are UTF-8"));
    let known: Vec<_> =
        lines.filter(|line| !line.is_empty()).map(|line| (vector(&line, &words, &context), line)).collect();
    for question in env::args().skip(1) {
        println!("{question}");
        let asked = vector(&question, &words, &context);
        let likeness = |other: &[f32]| asked.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
        let mut found: Vec<_> = known.iter().map(|(other, line)| (likeness(other), line)).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (nearness, line) in found.iter().take(SHOWN) {
            println!("  {nearness:.4}  {line}");
        }
    }
}
