// The buffer that stands for a guest's memory in a call of addon.c, and what lies where in it: what a call writes, what it
// takes, and from DATA on bytes of any number.
export const WORD = 0, TENSOR = 16, SHAPE = 64, DATA = 128;
export const ROOM_FOR_DIMENSIONS = (DATA - SHAPE) / 4;
/** So many bytes have a buffer of their own, with room before them: the library then reads and writes them where they are. */
export const OWN_FROM = 4096;

/** Room for a tensor's bytes. */
export const roomOf = (size) =>
  size < OWN_FROM ? new Uint8Array(size) : new Uint8Array(new ArrayBuffer(DATA + size), DATA, size);

export const hasOwnBuffer = ({ byteOffset, length, buffer }) =>
  length >= OWN_FROM && byteOffset === DATA && buffer.byteLength === DATA + length;

/** `size` of the bytes from `at` on. */
export function copyOf(bytes, at, size) {
  if (size < OWN_FROM) return bytes.slice(at, at + size);
  const room = roomOf(size);
  room.set(bytes.subarray(at, at + size));
  return room;
}
