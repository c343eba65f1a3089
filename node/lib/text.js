/** With U+FFFD in place of halves of surrogate pairs, as UTF-8 has it: USVString. */
export function wellFormed(text) {
  if (!/[\ud800-\udfff]/.test(text)) return text;
  return text.replace(/[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]/g, (unit) =>
    unit.length === 2 ? unit : '\ufffd',
  );
}

/** "a Float32Array", "an Int32Array" */
export const withArticle = (name) => `${/^[AEIO]/.test(name) ? 'an' : 'a'} ${name}`;
