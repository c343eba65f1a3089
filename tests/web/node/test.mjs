// node:test in a page: tests wait until the page asks for their outcomes.

const tests = [];
export function test(name, ...rest) {
  const [options, steps] = rest.length > 1 ? rest : [{}, ...rest];
  tests.push({ name, skip: options.skip, steps });
}

/** [{name, skip, failure}] in the order of the tests. */
export async function outcomes() {
  const found = [];
  for (const { name, skip, steps } of tests.splice(0)) {
    if (skip) {
      found.push({ name, skip });
      continue;
    }
    try {
      await steps();
      found.push({ name });
    } catch (error) {
      found.push({ name, failure: String(error?.stack ?? error) });
    }
  }
  return found;
}
