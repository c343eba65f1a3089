// Keeps what this page has fetched, for when the network is away. Models are kept by headrace/web itself.
const name = 'headrace-demo';

// What the page has before this worker is there.
const first = ['./', 'style.css', 'start.mjs'];
const keepFirst = async () => (await caches.open(name)).addAll(first);

self.addEventListener('install', (event) => event.waitUntil(keepFirst().then(() => self.skipWaiting())));
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

async function keep(request, response) {
  const cache = await caches.open(name);
  await cache.put(request, response).catch(() => {}); // a full disk is no reason to fail
}

/** The page has its answer while it is still being kept. */
async function answer(event) {
  const { request } = event;
  try {
    const response = await fetch(request);
    if (response.ok) event.waitUntil(keep(request, response.clone()));
    return response;
  } catch (error) {
    const kept = await (await caches.open(name)).match(request);
    if (kept) return kept;
    throw error;
  }
}

self.addEventListener('fetch', (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method !== 'GET' || origin !== location.origin || pathname.startsWith('/models/')) return;
  event.respondWith(answer(event));
});
