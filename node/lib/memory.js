// Views and buffers as they are: an object can have properties of its own named `byteLength` or `buffer` that say
// something else, and prototypes of another realm are others. So all is read by the getters of this realm.

const getter = (prototype, name) => Reflect.getOwnPropertyDescriptor(prototype, name)?.get;
const gettersOf = (prototype, names) =>
  Object.fromEntries(names.map((name) => [name, getter(prototype, name)]));

const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
const tagOf = getter(typedArray, Symbol.toStringTag);
const places = ['buffer', 'byteOffset', 'byteLength'];
const [ofArrays, ofDataViews] = [typedArray, DataView.prototype].map((one) => gettersOf(one, places));
const ofBuffers = gettersOf(ArrayBuffer.prototype, ['byteLength', 'resizable']);
const ofShared =
  typeof SharedArrayBuffer === 'undefined'
    ? {}
    : gettersOf(SharedArrayBuffer.prototype, ['byteLength', 'growable']);

/** Float16Array where this JavaScript has it; else Uint16Array holds the bits. */
export const HalfFloatArray = globalThis.Float16Array ?? Uint16Array;

/** The number of bytes of what has such a getter's slot; undefined for others. */
function sizeBy(method, value) {
  try {
    return method?.call(value);
  } catch {
    return undefined;
  }
}

/** "Float32Array", "DataView"; undefined for what is no view. */
export function viewKind(value) {
  return tagOf.call(value) ?? (ArrayBuffer.isView(value) ? 'DataView' : undefined);
}

/**
 * {kind, buffer, byteOffset, byteLength, resizes} of a view or a buffer, whose kind is then undefined; undefined for
 * others. What is detached has no bytes.
 */
export function memoryOf(value) {
  const kind = viewKind(value);
  const getters = kind === 'DataView' ? ofDataViews : ofArrays;
  const buffer = kind ? getters.buffer.call(value) : value;
  const size = sizeBy(ofBuffers.byteLength, buffer);
  const shared = size === undefined ? sizeBy(ofShared.byteLength, buffer) : undefined;
  if (size === undefined && shared === undefined) return undefined;
  const resizes = Boolean(
    size === undefined ? ofShared.growable?.call(buffer) : ofBuffers.resizable?.call(buffer),
  );
  if (!kind) return { kind, buffer, byteOffset: 0, byteLength: size ?? shared, resizes };
  // A DataView of a detached buffer throws.
  const byteOffset = sizeBy(getters.byteOffset, value) ?? 0;
  const byteLength = sizeBy(getters.byteLength, value) ?? 0;
  return { kind, buffer, byteOffset, byteLength, resizes };
}

/** The bytes that it has now, in place. */
export function bytesOf(value) {
  const { buffer, byteOffset, byteLength } = memoryOf(value);
  return new Uint8Array(buffer, byteOffset, byteLength);
}
