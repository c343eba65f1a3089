// Vectors of sentences that this browser keeps for the next visit, as a search keeps its index.

const place = '/examples/web/vectors'; // in the cache: the server has no such file
const open = () => caches.open('headrace-demo-vectors');

/** Which model has made them: none is kept for another. Undefined where the server cannot be asked. */
async function versionOf(model) {
  const response = await fetch(model, { method: 'HEAD', cache: 'no-store' }).catch(() => undefined);
  return response?.headers.get('ETag') ?? response?.headers.get('Last-Modified') ?? undefined;
}

/** {vectors, keep}: a Map from sentences to Float32Arrays, and a function that keeps it as it is then. */
export async function keptVectors(model) {
  const [version, kept] = await Promise.all([
    versionOf(model),
    open()
      .then((cache) => cache.match(place))
      .then((response) => response?.json())
      .catch(() => undefined),
  ]);
  const isOfModel = kept && (version === undefined || kept.version === version); // offline the model is the kept one, too
  const vectors = new Map(isOfModel ? kept.vectors.map(([s, v]) => [s, Float32Array.from(v)]) : []);
  const keep = async () => {
    if (version === undefined) return;
    const all = [...vectors].map(([sentence, vector]) => [sentence, Array.from(vector)]);
    const body = JSON.stringify({ version, vectors: all });
    // A full disk is no reason to fail.
    await open()
      .then(
        (cache) => cache.put(place, new Response(body)),
        () => {},
      )
      .catch(() => {});
  };
  return { vectors, keep };
}
