// node:fs, node:path and node:url as far as tests/node read the files of the server, in a page.

function answered(url) {
  const request = new XMLHttpRequest();
  request.open('GET', url, false); // as Node's functions return at once
  request.send();
  return request;
}
export const existsSync = (path) => answered(path).status === 200;
export const readFileSync = (path) => answered(path).responseText;
export const fileURLToPath = (url) => new URL(url).pathname;
export const dirname = (path) => path.replace(/\/[^/]*$/, '');
export const resolve = (folder, path) => new URL(path, `${location.origin}${folder}/`).pathname;
