// Finds an addon: in the checkout that built it, or in the package that carries this platform's binaries.

/* global require, __dirname */
const { existsSync } = require('node:fs');
const { join } = require('node:path');

/** What node/native or headrace-linux-x64 holds under the name "headrace" or "headrace-llm". */
export function native(name) {
  const built = join(__dirname, '..', 'native', `${name}.node`);
  if (existsSync(built)) return require(built);
  const platform = `headrace-${process.platform}-${process.arch}`;
  const carried = `${platform}/${name}.node`;
  try {
    return require(carried);
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND' || !error.message.includes(carried)) throw error;
    throw new Error(
      `headrace: there is neither ${built} (make node builds it) nor the package ${platform}, an optional dependency ` +
        'of headrace: npm install headrace without --omit=optional adds it, on Linux with glibc, of x64 or arm64',
    );
  }
}
