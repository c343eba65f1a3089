// Vectors of texts by all-MiniLM-L6-v2, for the program and the page that search by meaning.

/** A vector of length 1 of each text, which are one batch: shorter ones are filled up with tokens that the mask hides. */
export async function embed(tokenizer, model, texts) {
  const encoded = await tokenizer.encode(texts);
  const length = Math.max(...encoded.map(({ ids }) => ids.length));
  const dims = [texts.length, length];
  const ids = new BigInt64Array(texts.length * length).fill(BigInt(tokenizer.paddingId));
  const mask = new BigInt64Array(ids.length);
  encoded.forEach((one, row) => {
    one.ids.forEach((id, i) => (ids[row * length + i] = BigInt(id)));
    mask.fill(1n, row * length, row * length + one.ids.length);
  });
  const results = await model.run({ input_ids: { data: ids, dims }, attention_mask: { data: mask, dims } });
  const {
    data,
    dims: [, width],
  } = results.sentence_embedding;
  return texts.map((_, row) => data.subarray(row * width, (row + 1) * width));
}

/** How near two vectors of length 1 are: the cosine of their angle. */
export const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
