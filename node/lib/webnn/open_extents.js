// Ahead of the specification: {name, maxSize} stands for an extent that a dispatch decides. One name is one number.
import { isOpen } from './data_types.js';
import { printable } from './idl.js';

/** What C++ has for an int. */
const anySize = 0x7fffffff;

/**
 * The shape with a maxSize for each open extent, which is the name's: given here, or by `sizes`, those of a builder by
 * name, which do not change.
 */
export function withSizes(sizes, shape, what) {
  if (!shape.some(isOpen)) return shape;
  const here = new Map();
  return shape.map((extent, i) => {
    if (!isOpen(extent)) return extent;
    const { name, maxSize } = extent;
    const known = here.get(name) ?? sizes.get(name);
    if (maxSize !== undefined && known !== undefined && maxSize !== known)
      throw new TypeError(
        `${what}[${i}]: the dimension "${printable(name)}" has the maxSize ${maxSize}; it was declared with ${known}`,
      );
    here.set(name, known ?? maxSize ?? anySize);
    return Object.freeze({ name, maxSize: here.get(name) });
  });
}

/** Keeps what withSizes() made, once the call has succeeded. */
export function noteSizes(sizes, shape) {
  for (const extent of shape) if (isOpen(extent)) sizes.set(extent.name, extent.maxSize);
}
