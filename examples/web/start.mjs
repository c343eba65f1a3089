// Starts the page where its service worker keeps what it fetches, so that it works offline from the first visit on. Later
// visits have one and do not wait.

/** Resolves when a service worker that is new has taken this page, or has failed. */
async function taken() {
  const { installing } = await navigator.serviceWorker.register('offline.js', { scope: '/' });
  if (!installing) return;
  await new Promise((go) => {
    installing.addEventListener('statechange', () => {
      if (['activated', 'redundant'].includes(installing.state)) go();
    });
  });
}

const { serviceWorker } = navigator;
const registered = serviceWorker && taken().catch(() => {}); // it is a convenience
if (!serviceWorker?.controller) await registered;
await import('./app.mjs');
