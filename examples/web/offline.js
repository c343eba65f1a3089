// Keeps what this page has fetched, for when the network is away. Models are kept by headrace/web itself.
const name = 'headrace-demo';

// What the page has before this worker is there.
const first = ['./', 'style.css', 'start.mjs'];
const keepFirst = async () => (await caches.open(name)).addAll(first);

self.addEventListener('install', (event) => event.waitUntil(keepFirst().then(() => self.skipWaiting())));
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

async function answer(request) {
  const cache = await caches.open(name);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(request);
    if (kept) return kept;
    throw error;
  }
}

self.addEventListener('fetch', (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method !== 'GET' || origin !== location.origin || pathname.startsWith('/models/')) return;
  event.respondWith(answer(event.request));
});
