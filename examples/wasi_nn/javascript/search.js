// A component that searches by meaning: finds the lines of its standard input that are nearest to each of its
// arguments. The vectors are MiniLM's, an ONNX model that its host calls `minilm`; the words of its tokenizer are in
// /minilm/vocab.txt, a folder that the host gives it. Letters with accents are taken as they are written: the interpreter
// has no tables of Unicode.
import { getArguments } from "wasi:cli/environment@0.2.0";
import { getStdin } from "wasi:cli/stdin@0.2.0";
import { getDirectories } from "wasi:filesystem/preopens@0.2.0";
import { loadByName } from "wasi:nn/graph@0.2.0-rc-2024-10-28";
import { Tensor } from "wasi:nn/tensor@0.2.0-rc-2024-10-28";

const shown = 2, chunk = 65536n;
const folder = "/minilm", file = "vocab.txt";

function textOf(stream) {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) text += decoder.decode(stream.blockingRead(chunk), { stream: true });
  } catch (error) {
    if (error.payload?.tag !== "closed") throw error;
  }
  return text + decoder.decode();
}

function vocabulary() {
  const [directory] = getDirectories().find(([, name]) => name === folder) ?? [];
  if (!directory) throw new Error(`the host gives no folder ${folder}`);
  return textOf(directory.openAt({}, file, {}, { read: true }).readViaStream(0n));
}

/** Marks of ASCII are words of their own. */
const wordsOrMarks = /[^\s!-/:-@[-`{-~]+|[!-/:-@[-`{-~]/g;

/** BERT's tokenizer of lower case: words, and the longest known pieces of each. */
class WordPieces {
  #numbers;
  constructor(text) { this.#numbers = new Map(text.split("\n").map((word, number) => [word, number])); }
  tokens(text) {
    const words = text.toLowerCase().match(wordsOrMarks) ?? [];
    return ["[CLS]", ...words.flatMap((word) => this.#pieces(word)), "[SEP]"].map((word) => this.#numbers.get(word));
  }
  #pieces(word) {
    const pieces = [];
    for (let start = 0, end; start < word.length; start = end) {
      const lead = start ? "##" : "";
      for (end = word.length; end > start && !this.#numbers.has(lead + word.slice(start, end)); end--);
      if (end === start) return ["[UNK]"];
      pieces.push(lead + word.slice(start, end));
    }
    return pieces;
  }
}

function search(lines, questions) {
  const words = new WordPieces(vocabulary());
  const context = loadByName("minilm").initExecutionContext();
  const vector = (text) => {
    const tokens = words.tokens(text);
    const inputs = [["input_ids", tokens], ["attention_mask", tokens.map(() => 1)]].map(([name, values]) =>
      [name, new Tensor([1, values.length], "I64", new Uint8Array(BigInt64Array.from(values, BigInt).buffer))]);
    const [, found] = context.compute(inputs).find(([name]) => name === "sentence_embedding");
    return new Float32Array(Uint8Array.from(found.data()).buffer);
  };
  const vectors = lines.map(vector);
  for (const question of questions) {
    console.log(question);
    const asked = vector(question);
    const likeness = vectors.map((other) => other.reduce((sum, value, i) => sum + value * asked[i], 0));
    const order = [...lines.keys()].sort((a, b) => likeness[b] - likeness[a]);
    for (const line of order.slice(0, shown)) console.log(`  ${likeness[line].toFixed(4)}  ${lines[line]}`);
  }
}

export const run = {
  run() {
    try {
      search(textOf(getStdin()).split("\n").filter(Boolean), getArguments().slice(1));
    } catch (error) {
      const { payload } = error;
      // wasi:nn's errors are resources, those of files are names.
      console.log(payload?.code ? `${payload.code()}: ${payload.data()}` : (payload ?? error.message));
      throw undefined;
    }
  },
};
