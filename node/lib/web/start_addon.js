// Instantiates the addon's module, in the page and in its worker.

/** {addon, napi, files} of the module's factory; `options` are Emscripten's. */
export async function startAddon(factory, module, options = {}) {
  const started = await factory({
    ...options,
    instantiateWasm(imports, receive) {
      WebAssembly.instantiate(module, imports).then(
        (instance) => receive(instance, module),
        (error) => options.onAbort?.(error.message),
      );
      return {};
    },
  });
  return { addon: started.napi.load(), napi: started.napi, files: started.FS };
}
