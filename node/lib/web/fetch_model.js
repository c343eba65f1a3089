// Files of models by URL: their bytes with progress, kept in the browser's cache, which serves them where the network is
// away.

const cacheName = 'headrace-models';
const openCache = () => globalThis.caches?.open(cacheName).catch(() => undefined);

/** What the server says is unchanged, or cannot be asked about, comes from the cache. */
async function responseOf(url, cache, signal) {
  const kept = await cache?.match(url);
  const validators = [
    ['If-None-Match', kept?.headers.get('ETag')],
    ['If-Modified-Since', kept?.headers.get('Last-Modified')],
  ].filter(([, value]) => value);
  try {
    const headers = Object.fromEntries(validators);
    const response = await fetch(url, { headers, signal, cache: kept ? 'no-store' : 'default' });
    if (response.status === 304 && kept) return { response: kept, isKept: true };
    return { response, isKept: false };
  } catch (error) {
    if (!kept || signal?.aborted) throw error;
    return { response: kept, isKept: true };
  }
}

/** A response's bytes in one buffer, told to `progress` as {loaded, total}; total is 0 where it is not known. */
async function read(response, isKept, progress) {
  if (isKept || !progress || !response.body) {
    const bytes = new Uint8Array(await response.arrayBuffer());
    progress?.({ loaded: bytes.length, total: bytes.length });
    return bytes;
  }
  const total = response.headers.has('Content-Encoding') ? 0 : Number(response.headers.get('Content-Length'));
  let bytes = new Uint8Array(total);
  let loaded = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    if (loaded + value.length > bytes.length) {
      const larger = new Uint8Array(Math.max(2 * bytes.length, loaded + value.length));
      larger.set(bytes.subarray(0, loaded));
      bytes = larger;
    }
    bytes.set(value, loaded);
    loaded += value.length;
    progress({ loaded, total });
  }
  return loaded === bytes.length ? bytes : bytes.slice(0, loaded);
}

/** The file's bytes. Errors: what fetch() throws; an Error with the status of a refusal. */
export async function fetchModel(url, { progress, signal, cached = true } = {}) {
  const cache = cached ? await openCache() : undefined;
  const { response, isKept } = await responseOf(url, cache, signal);
  if (!response.ok) throw new Error(`${url} gives ${response.status} ${response.statusText}`);
  const bytes = await read(response, isKept, progress);
  if (cache && !isKept) {
    const headers = new Headers(response.headers);
    headers.delete('Content-Encoding'); // the bytes are plain
    headers.set('Content-Length', String(bytes.length));
    // The cache gets a copy, for which nobody waits. A full disk is no reason to fail.
    cache.put(url, new Response(bytes, { headers })).catch(() => {});
  }
  return bytes;
}
