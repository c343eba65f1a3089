// Has this browser keep what the page has fetched, so that it works offline from the first visit on.

/** Models are kept by headrace/web itself. */
const isOurs = (url) => url.startsWith(location.origin) && !new URL(url).pathname.startsWith('/models/');

/** True when all is kept; false where that cannot be, which is no reason to fail. */
export async function keepForOffline() {
  try {
    await navigator.serviceWorker.register('offline.js', { scope: '/' });
    const fetched = performance.getEntriesByType('resource').map(({ name }) => name);
    const cache = await caches.open('headrace-demo');
    await cache.addAll(new Set([location.href.split('#')[0], ...fetched.filter(isOurs)]));
    await navigator.serviceWorker.ready;
    return true;
  } catch {
    return false;
  }
}
