// Node-API (https://nodejs.org/api/n-api.html) as far as node/src calls it, for Emscripten: with it Node's addon is a module
// of WebAssembly. Handles are places in a list, which are given back when the outermost call of C++ ends. Work that Node
// does on a pool's threads is done by this one, which therefore is a worker's: at the end of the task that asks for it, or
// between two later ones if there is other work.
addToLibrary({
  $Napi__deps: ['malloc', 'free', 'sbrk', '$getWasmTableEntry'],
  $Napi: class {
    /** napi_status, napi_valuetype and napi_typedarray_type, as far as they occur. */
    static status = { ok: 0, expected: 1, failure: 9, pending: 10 };
    static types = {
      undefined: 0,
      boolean: 2,
      number: 3,
      string: 4,
      symbol: 5,
      object: 6,
      function: 7,
      bigint: 9,
    };
    static arrays = { 1: Uint8Array, 5: Int32Array };
    static External = class {
      constructor(data, finalize, hint) {
        Object.assign(this, { data, finalize, hint });
      }
    };
    /** Bytes in the module's own memory, which stay where they are: in place of a Uint8Array. */
    static Bytes = class {
      constructor(length) {
        this.length = length;
        this.pointer = _malloc(length || 1);
        if (!this.pointer) throw Napi.outOfMemory(length);
      }
      copy() {
        return HEAPU8.slice(this.pointer, this.pointer + this.length);
      }
      free() {
        _free(this.pointer);
      }
    };
    static outOfMemory(bytes) {
      const error = new Error(`out of memory: ${bytes} bytes are not there`);
      error.code = 'out_of_memory';
      return error;
    }

    values = [undefined]; // a handle is a place here, and 0 is NULL
    depth = 0;
    frames = []; // the arguments of calls that go on
    copies = []; // {pointer, buffer}: memory for the length of a call; what it holds goes to the buffer, if there is one
    kept = new Map(); // what references, promises and works are, by number
    lastKept = 0;
    exception = null;
    works = [];
    isWorking = false;
    Bytes = Napi.Bytes;
    /** What is called when C++ did not return: the module is of no use any more. */
    onFatal = (error) => {
      throw error;
    };
    registry = new FinalizationRegistry((rest) => this.finalize(rest));
    later = this.makeLater();

    makeLater() {
      const run = () => this.work();
      if (globalThis.setImmediate) return () => setImmediate(run);
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = run;
      return () => port2.postMessage(null);
    }

    /** The functions of the addon. */
    load() {
      const exports = {};
      this.entered(() => _napi_register_wasm_v1(1, this.handle(exports)));
      return exports;
    }

    /** Bytes that the heap has taken so far. */
    heapSize() {
      return _sbrk(0);
    }

    handle(value) {
      return this.values.push(value) - 1;
    }
    keep(value) {
      this.kept.set(++this.lastKept, value);
      return this.lastKept;
    }
    give(result, value) {
      HEAPU32[result >>> 2] = this.handle(value);
      return Napi.status.ok;
    }
    /** Gives what a function returns; what it throws is the pending exception. */
    attempt(result, steps) {
      try {
        return this.give(result, steps());
      } catch (error) {
        this.exception = { error };
        return Napi.status.pending;
      }
    }

    entered(steps) {
      this.depth += 1;
      try {
        return steps();
      } finally {
        this.depth -= 1;
        if (this.depth === 0) this.leave();
      }
    }
    leave() {
      this.values.length = 1;
      for (const { pointer, buffer } of this.copies) {
        if (buffer) new Uint8Array(buffer).set(HEAPU8.subarray(pointer, pointer + buffer.byteLength));
        _free(pointer);
      }
      this.copies.length = 0;
    }
    finalize({ finalize, data, hint }) {
      this.entered(() => getWasmTableEntry(finalize)(1, data, hint));
    }
    /** Frees what C++ has of an external, which nobody uses any more. */
    release(external) {
      this.registry.unregister(external);
      this.finalize(external);
    }
    call(callback, args) {
      const result = this.entered(() => {
        this.frames.push(args);
        try {
          return this.values[getWasmTableEntry(callback)(1, this.frames.length - 1)];
        } finally {
          this.frames.pop();
        }
      });
      if (!this.exception) return result;
      const { error } = this.exception;
      this.exception = null;
      throw error;
    }

    text(pointer, length) {
      const end = length === 0xffffffff ? HEAPU8.indexOf(0, pointer) : pointer + length;
      return new TextDecoder('utf-8', { ignoreBOM: true }).decode(HEAPU8.slice(pointer, end));
    }
    /** Memory of as many bytes that is freed when the call ends. */
    memory(bytes, buffer) {
      const pointer = _malloc(bytes || 1);
      if (!pointer) throw Napi.outOfMemory(bytes);
      this.copies.push({ pointer, buffer });
      return pointer;
    }
    pointerOf(value) {
      if (value instanceof Napi.Bytes) return value.pointer;
      const pointer = this.memory(value.byteLength);
      HEAPU8.set(new Uint8Array(value.buffer, value.byteOffset, value.byteLength), pointer);
      return pointer;
    }

    work() {
      const next = this.works.shift();
      if (!next) return;
      if (this.works.length > 0) this.later();
      this.isWorking = true;
      try {
        getWasmTableEntry(next.execute)(1, next.data);
        this.entered(() => getWasmTableEntry(next.complete)(1, Napi.status.ok, next.data));
      } catch (error) {
        this.onFatal(error);
      } finally {
        this.isWorking = false;
      }
    }
    /** What work asks for waits until messages have been heard, which may end it. */
    queue(work) {
      if (this.works.push(work) > 1) return;
      if (this.isWorking) this.later();
      else queueMicrotask(() => this.work());
    }
  },
  $napi: 'new Napi()',
  $napi__deps: ['$Napi'],

  napi_get_undefined__sig: 'ipp',
  napi_get_undefined: (_, result) => napi.give(result, undefined),
  napi_get_global__sig: 'ipp',
  napi_get_global: (_, result) => napi.give(result, globalThis),
  napi_get_boolean__sig: 'ipip',
  napi_get_boolean: (_, value, result) => napi.give(result, Boolean(value)),
  napi_create_double__sig: 'ipdp',
  napi_create_double: (_, value, result) => napi.give(result, value),
  napi_create_string_utf8__sig: 'ipppp',
  napi_create_string_utf8: (_, text, length, result) => napi.give(result, napi.text(text, length)),
  napi_create_object__sig: 'ipp',
  napi_create_object: (_, result) => napi.give(result, {}),
  napi_create_array_with_length__sig: 'ippp',
  napi_create_array_with_length: (_, length, result) => napi.give(result, new Array(length)),
  napi_create_error__sig: 'ipppp',
  napi_create_error: (_, code, message, result) =>
    napi.give(result, Object.assign(new Error(napi.values[message]), { code: napi.values[code] })),
  napi_create_arraybuffer__sig: 'ipppp',
  napi_create_arraybuffer: (_, length, data, result) =>
    napi.attempt(result, () => {
      const buffer = new ArrayBuffer(length);
      const pointer = napi.memory(length, buffer); // first: memory that grows has new views
      HEAPU32[data >>> 2] = pointer;
      return buffer;
    }),
  napi_create_external_arraybuffer__sig: 'ipppppp',
  napi_create_external_arraybuffer: (_, data, length, finalize, hint, result) => {
    const status = napi.attempt(result, () => HEAPU8.slice(data, data + length).buffer);
    if (status === Napi.status.ok) getWasmTableEntry(finalize)(1, data, hint);
    return status;
  },
  napi_create_typedarray__sig: 'ipipppp',
  napi_create_typedarray: (_, type, length, buffer, offset, result) =>
    napi.attempt(result, () => new Napi.arrays[type](napi.values[buffer], offset, length)),
  napi_create_function__sig: 'ipppppp',
  napi_create_function: (_, name, length, callback, data, result) =>
    napi.give(result, (...args) => napi.call(callback, args)),
  napi_create_external__sig: 'ippppp',
  napi_create_external: (_, data, finalize, hint, result) => {
    const external = new Napi.External(data, finalize, hint);
    napi.registry.register(external, { finalize, data, hint }, external);
    return napi.give(result, external);
  },

  napi_typeof__sig: 'ippp',
  napi_typeof: (_, value, result) => {
    const given = napi.values[value];
    if (given === null) HEAP32[result >>> 2] = 1;
    else if (given instanceof Napi.External) HEAP32[result >>> 2] = 8;
    else HEAP32[result >>> 2] = Napi.types[typeof given];
    return Napi.status.ok;
  },
  napi_get_value_double__sig: 'ippp',
  napi_get_value_double: (_, value, result) => {
    const given = napi.values[value];
    if (typeof given !== 'number') return Napi.status.expected;
    HEAPF64[result >>> 3] = given;
    return Napi.status.ok;
  },
  napi_get_value_int64__sig: 'ippp',
  napi_get_value_int64: (_, value, result) => {
    const given = napi.values[value];
    if (typeof given !== 'number') return Napi.status.expected;
    const limit = 2 ** 63;
    const integer = Number.isFinite(given)
      ? BigInt(Math.trunc(Math.min(Math.max(given, -limit), limit)))
      : 0n;
    HEAP64[result >>> 3] = integer === 2n ** 63n ? integer - 1n : integer;
    return Napi.status.ok;
  },
  napi_get_value_bool__sig: 'ippp',
  napi_get_value_bool: (_, value, result) => {
    const given = napi.values[value];
    if (typeof given !== 'boolean') return Napi.status.expected;
    HEAPU8[result] = Number(given);
    return Napi.status.ok;
  },
  napi_get_value_bigint_int64__sig: 'ipppp',
  napi_get_value_bigint_int64: (_, value, result, lossless) => {
    const given = napi.values[value];
    HEAP64[result >>> 3] = BigInt.asIntN(64, given);
    HEAPU8[lossless] = Number(BigInt.asIntN(64, given) === given);
    return Napi.status.ok;
  },
  napi_get_value_bigint_uint64__sig: 'ipppp',
  napi_get_value_bigint_uint64: (_, value, result, lossless) => {
    const given = napi.values[value];
    HEAPU64[result >>> 3] = BigInt.asUintN(64, given);
    HEAPU8[lossless] = Number(BigInt.asUintN(64, given) === given);
    return Napi.status.ok;
  },
  napi_get_value_string_utf8__sig: 'ippppp',
  napi_get_value_string_utf8: (_, value, buffer, size, length) => {
    const given = napi.values[value];
    if (typeof given !== 'string') return Napi.status.expected;
    const bytes = new TextEncoder().encode(given);
    const most = buffer ? Math.min(bytes.length, size - 1) : bytes.length;
    if (buffer) {
      HEAPU8.set(bytes.subarray(0, most), buffer);
      HEAPU8[buffer + most] = 0;
    }
    HEAPU32[length >>> 2] = most;
    return Napi.status.ok;
  },
  napi_get_value_external__sig: 'ippp',
  napi_get_value_external: (_, value, result) => {
    const given = napi.values[value];
    if (!(given instanceof Napi.External)) return Napi.status.expected;
    HEAPU32[result >>> 2] = given.data;
    return Napi.status.ok;
  },
  napi_get_typedarray_info__sig: 'ippppppp',
  napi_get_typedarray_info: (_, value, type, length, data, buffer, offset) => {
    const given = napi.values[value];
    if (!(given instanceof Uint8Array || given instanceof Napi.Bytes)) return Napi.status.expected;
    try {
      const pointer = napi.pointerOf(given); // first: memory that grows has new views
      HEAPU32[data >>> 2] = pointer;
    } catch (error) {
      napi.exception = { error };
      return Napi.status.pending;
    }
    HEAP32[type >>> 2] = 1;
    HEAPU32[length >>> 2] = given.length;
    return Napi.status.ok;
  },

  napi_get_array_length__sig: 'ippp',
  napi_get_array_length: (_, array, result) => {
    if (!Array.isArray(napi.values[array])) return Napi.status.expected;
    HEAPU32[result >>> 2] = napi.values[array].length;
    return Napi.status.ok;
  },
  napi_get_element__sig: 'ippip',
  napi_get_element: (_, array, place, result) => napi.give(result, napi.values[array][place >>> 0]),
  napi_set_element__sig: 'ippip',
  napi_set_element: (_, array, place, value) => {
    napi.values[array][place >>> 0] = napi.values[value];
    return Napi.status.ok;
  },
  napi_get_named_property__sig: 'ipppp',
  napi_get_named_property: (_, object, name, result) =>
    napi.attempt(result, () => napi.values[object][napi.text(name, 0xffffffff)]),
  napi_set_named_property__sig: 'ipppp',
  napi_set_named_property: (_, object, name, value) => {
    napi.values[object][napi.text(name, 0xffffffff)] = napi.values[value];
    return Napi.status.ok;
  },
  napi_has_named_property__sig: 'ipppp',
  napi_has_named_property: (_, object, name, result) => {
    HEAPU8[result] = Number(napi.text(name, 0xffffffff) in napi.values[object]);
    return Napi.status.ok;
  },

  napi_get_cb_info__sig: 'ipppppp',
  napi_get_cb_info: (_, info, count, arguments_, receiver, data) => {
    const given = napi.frames[info];
    for (let i = 0; i < HEAPU32[count >>> 2]; ++i) HEAPU32[(arguments_ >>> 2) + i] = napi.handle(given[i]);
    HEAPU32[count >>> 2] = given.length;
    return Napi.status.ok;
  },
  napi_call_function__sig: 'ipppppp',
  napi_call_function: (_, receiver, callee, count, arguments_, result) =>
    napi.attempt(result, () => {
      const places = HEAPU32.slice(arguments_ >>> 2, (arguments_ >>> 2) + count);
      return napi.values[callee].apply(
        napi.values[receiver],
        Array.from(places, (place) => napi.values[place]),
      );
    }),
  napi_throw__sig: 'ipp',
  napi_throw: (_, error) => {
    napi.exception = { error: napi.values[error] };
    return Napi.status.ok;
  },
  napi_is_exception_pending__sig: 'ipp',
  napi_is_exception_pending: (_, result) => {
    HEAPU8[result] = Number(napi.exception !== null);
    return Napi.status.ok;
  },

  napi_create_reference__sig: 'ippip',
  napi_create_reference: (_, value, count, result) => {
    HEAPU32[result >>> 2] = napi.keep(napi.values[value]);
    return Napi.status.ok;
  },
  napi_get_reference_value__sig: 'ippp',
  napi_get_reference_value: (_, reference, result) => napi.give(result, napi.kept.get(reference)),
  napi_delete_reference__sig: 'ipp',
  napi_delete_reference: (_, reference) => {
    napi.kept.delete(reference);
    return Napi.status.ok;
  },
  napi_create_promise__sig: 'ippp',
  napi_create_promise: (_, deferred, promise) =>
    napi.give(
      promise,
      new Promise((resolve, reject) => {
        HEAPU32[deferred >>> 2] = napi.keep({ resolve, reject });
      }),
    ),
  napi_resolve_deferred__sig: 'ippp',
  napi_resolve_deferred: (_, deferred, value) => {
    napi.kept.get(deferred).resolve(napi.values[value]);
    napi.kept.delete(deferred);
    return Napi.status.ok;
  },
  napi_reject_deferred__sig: 'ippp',
  napi_reject_deferred: (_, deferred, value) => {
    napi.kept.get(deferred).reject(napi.values[value]);
    napi.kept.delete(deferred);
    return Napi.status.ok;
  },

  napi_create_async_work__sig: 'ippppppp',
  napi_create_async_work: (_, resource, name, execute, complete, data, result) => {
    HEAPU32[result >>> 2] = napi.keep({ execute, complete, data });
    return Napi.status.ok;
  },
  napi_queue_async_work__sig: 'ipp',
  napi_queue_async_work: (_, work) => {
    napi.queue(napi.kept.get(work));
    return Napi.status.ok;
  },
  napi_delete_async_work__sig: 'ipp',
  napi_delete_async_work: (_, work) => {
    napi.kept.delete(work);
    return Napi.status.ok;
  },
  napi_adjust_external_memory__sig: 'ipjp',
  napi_adjust_external_memory: (_, change, result) => {
    HEAP64[result >>> 3] = 0n;
    return Napi.status.ok;
  },
});
// Each needs the state that all share.
for (const name of Object.keys(LibraryManager.library))
  if (/^napi_[a-z0-9_]+$/.test(name) && !name.includes('__'))
    LibraryManager.library[`${name}__deps`] ??= ['$napi'];
