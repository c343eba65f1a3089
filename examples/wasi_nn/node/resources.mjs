// What handles of components stand for in Node, and how much of it one guest may hold.
const MOST_RESOURCES = 65536;
/** The most bytes of a guest's tensors and errors. */
export const MOST_BYTES = 2 ** 30;
/** Names that jco looks for in a class: the number by which its tables know a resource, and what drops such a number. */
const REP = Symbol.for('cabiRep'), DISPOSE = Symbol.for('cabiDispose');
/** jco has a flag in the bit above. */
const MOST_REPS = 2 ** 30 - 1;
const resources = new Map();
let latestRep = 0;

/** What a guest may not do: it is ended. */
export class GuestFault extends Error {}

/** What one guest may hold. */
export class Holdings {
  #resources = 0;
  #bytes = 0;
  #mostBytes;
  constructor(mostBytes) { this.#mostBytes = Math.min(mostBytes, MOST_BYTES); }
  take(bytes) {
    if (this.#resources >= MOST_RESOURCES)
      throw new GuestFault(`the guest holds ${MOST_RESOURCES} resources, and may hold no more`);
    if (this.#bytes + bytes > this.#mostBytes)
      throw new GuestFault(
        `the guest's tensors and errors hold ${this.#bytes} bytes, and ${bytes} more are beyond ${this.#mostBytes}`);
    this.#resources++;
    this.#bytes += bytes;
  }
  give(bytes) {
    this.#resources--;
    this.#bytes -= bytes;
  }
}

export class Resource {
  #holdings;
  #size;
  constructor(holdings, size = 0) {
    holdings.take(size);
    this.#holdings = holdings;
    this.#size = size;
    // A number comes again when all others were given: until then a handle that was dropped stands for nothing.
    do latestRep = latestRep % MOST_REPS + 1; while (resources.has(latestRep));
    this[REP] = latestRep;
    resources.set(latestRep, this);
  }
  /** The number by which a table of handles knows it. */
  get rep() { return this[REP]; }
  static ofRep(rep) { return resources.get(rep); }
  /** Whether it was there until now. */
  drop() {
    if (resources.get(this[REP]) !== this) return false;
    resources.delete(this[REP]);
    this.#holdings.give(this.#size);
    return true;
  }
  static [DISPOSE](rep) { resources.get(rep)?.[Symbol.dispose](); }
}

/** The resource that a handle stands for. jco makes objects of our classes, without their constructors, for handles that
 * it does not know. */
export function known(object) {
  const found = resources.get(object[REP]);
  if (found !== object && found?.constructor !== object.constructor)
    throw new GuestFault('the guest passed a handle of nothing, or one that it had dropped');
  return found;
}
