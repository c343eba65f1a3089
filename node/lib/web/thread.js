// A thread of the worker's. It is a worker of the page's, since a browser may leave a worker's own workers behind when the page
// goes, and a worker that computes does not hear that one of them has failed. Emscripten talks to it by a port.

self.onmessage = async ({ data: { factory, port } }) => {
  const waiting = [];
  self.onmessage = null;
  self.postMessage = (message, moved) => port.postMessage(message, moved);
  port.onmessage = (event) => waiting.push(event);
  await import(factory); // which sets self.onmessage, as in a worker of its own
  waiting.forEach((event) => self.onmessage(event));
  port.onmessage = (event) => self.onmessage(event);
};
