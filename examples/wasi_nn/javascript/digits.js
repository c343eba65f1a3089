// A component that tells which digit a drawing is: a text of marks and blanks, of any size. Its host calls the network
// of examples/node/train_digits.mjs `digits`.
import { getArguments } from "wasi:cli/environment@0.2.0";
import { loadByName } from "wasi:nn/graph@0.2.0-rc-2024-10-28";
import { Tensor } from "wasi:nn/tensor@0.2.0-rc-2024-10-28";

const side = 12, shown = 3;

const overlap = (cell, from, length) => Math.max(0, Math.min(cell + 1, from + length) - Math.max(cell, from));

/** What is drawn fills 12 x 12 numbers from 0 to 1, its proportions kept. */
function normalized(text) {
  const marks = text.split("\n").flatMap((line, y) =>
    [...line].flatMap((mark, x) => (mark === " " || mark === "." ? [] : [[x, y]])));
  const [xs, ys] = [0, 1].map((axis) => marks.map((mark) => mark[axis]));
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const [width, height] = [Math.max(...xs) - left + 1, Math.max(...ys) - top + 1];
  const scale = side / Math.max(width, height);
  const [dx, dy] = [(side - width * scale) / 2, (side - height * scale) / 2];
  const image = new Float32Array(side * side);
  for (const mark of marks) {
    // Each mark is spread over the cells that it covers.
    const [x, y] = [dx + (mark[0] - left) * scale, dy + (mark[1] - top) * scale];
    image.forEach((value, at) => {
      const share = overlap(at % side, x, scale) * overlap(Math.floor(at / side), y, scale);
      image[at] = Math.min(1, value + share);
    });
  }
  return image;
}

export const run = {
  run() {
    const drawing = getArguments()[1] ?? "";
    if (!/[^ .\n]/.test(drawing)) {
      console.log("digits DRAWING: a text of marks and blanks");
      throw undefined;
    }
    try {
      const context = loadByName("digits").initExecutionContext();
      const image = normalized(drawing);
      const outputs = context.compute([["image", new Tensor([1, side * side], "FP32", new Uint8Array(image.buffer))]]);
      const bytes = Uint8Array.from(outputs.find(([name]) => name === "probabilities")[1].data());
      const found = new Float32Array(bytes.buffer);
      const order = [...found.keys()].sort((a, b) => found[b] - found[a]);
      for (const digit of order.slice(0, shown)) console.log(`${digit}: ${(100 * found[digit]).toFixed(1)} %`);
    } catch (error) {
      const { payload } = error;
      if (!payload) throw error;
      console.log(`${payload.code()}: ${payload.data()}`);
      throw undefined;
    }
  },
};
