// Reads WebIDL as far as the Web Neural Network API uses it.

const pattern = /\/\/.*|\s+|"[^"]*"|-?[\d.]+(?:e-?\d+)?|[A-Za-z_]\w*|[{}()[\]<>;:,=?]/gy;

function tokensOf(text) {
  const tokens = [];
  for (pattern.lastIndex = 0; pattern.lastIndex < text.length; ) {
    const [token] = pattern.exec(text) ?? [];
    if (token === undefined) throw new Error(`no WebIDL: ${text.slice(0, 40)}`);
    if (!/^(\s|\/\/)/.test(token)) tokens.push(token);
  }
  return tokens;
}

class Parser {
  constructor(text) {
    this.tokens = tokensOf(text);
    this.at = 0;
  }
  get next() {
    return this.tokens[this.at];
  }
  take(expected) {
    const token = this.tokens[this.at];
    if (expected !== undefined && token !== expected)
      throw new Error(`${token} at ${this.at}; ${expected} is expected`);
    this.at += 1;
    return token;
  }
  takes(token) {
    if (this.next !== token) return false;
    this.at += 1;
    return true;
  }
  list(end, item) {
    const items = [];
    while (!this.takes(end)) {
      items.push(item());
      if (this.next !== end) this.take(',');
    }
    return items;
  }
  /** Extended attributes as text: ["EnforceRange"]. */
  attributes() {
    if (!this.takes('[')) return [];
    const found = [];
    for (let depth = 1; depth > 0; ) {
      const token = this.take();
      if (token === '[' || token === '(') depth += 1;
      else if (token === ']' || token === ')') depth -= 1;
      else if (/^\w+$/.test(token)) found.push(token);
    }
    return found;
  }
  /** {name, attributes, of: [types]}; unions are named "or". */
  type() {
    const attributes = this.attributes();
    if (this.takes('(')) {
      const of = [this.type()];
      while (this.takes('or')) of.push(this.type());
      this.take(')');
      return { name: 'or', attributes, of };
    }
    const words = [this.take()];
    while (
      ['unsigned', 'unrestricted', 'long'].includes(words.at(-1)) &&
      /^(long|double|float)$/.test(this.next)
    )
      words.push(this.take());
    const of = this.takes('<') ? this.list('>', () => this.type()) : [];
    return { name: words.join(' '), attributes, of };
  }
  defaultValue() {
    if (!this.takes('=')) return undefined;
    const value = this.take();
    if (value === '{') this.take('}');
    return value;
  }
  argument() {
    const before = this.attributes();
    const isOptional = this.takes('optional');
    const type = this.type();
    type.attributes.push(...before);
    return { type, isOptional, name: this.take(), otherwise: this.defaultValue() };
  }
  interfaceMember() {
    const attributes = this.attributes();
    if (this.takes('constructor')) {
      this.take('(');
      return { kind: 'constructor', parameters: this.list(')', () => this.argument()) };
    }
    if (this.takes('readonly')) {
      this.take('attribute');
      return { kind: 'attribute', attributes, type: this.type(), name: this.take() };
    }
    const type = this.type();
    const name = this.take();
    this.take('(');
    return { kind: 'operation', type, name, parameters: this.list(')', () => this.argument()) };
  }
  dictionaryMember() {
    const isRequired = this.takes('required');
    const type = this.type();
    return { isRequired, type, name: this.take(), otherwise: this.defaultValue() };
  }
  body(member) {
    this.take('{');
    const members = [];
    while (!this.takes('}')) {
      members.push(member());
      this.take(';');
    }
    return members;
  }
}

/** {interfaces, dictionaries, enums, typedefs} by name; partial ones are put together. */
export function parseIdl(text) {
  const parser = new Parser(text);
  const idl = { interfaces: {}, dictionaries: {}, enums: {}, typedefs: {} };
  while (parser.at < parser.tokens.length) {
    const attributes = parser.attributes();
    parser.takes('partial');
    const kind = parser.take();
    if (kind === 'interface') {
      parser.takes('mixin');
      const one = (idl.interfaces[parser.take()] ??= { attributes: [], members: [] });
      one.attributes.push(...attributes);
      one.members.push(...parser.body(() => parser.interfaceMember()));
    } else if (kind === 'dictionary') {
      const one = (idl.dictionaries[parser.take()] ??= { members: [] });
      if (parser.takes(':')) one.base = parser.take();
      one.members.push(...parser.body(() => parser.dictionaryMember()));
    } else if (kind === 'enum') {
      const name = parser.take();
      parser.take('{');
      idl.enums[name] = parser.list('}', () => parser.take().slice(1, -1));
    } else if (kind === 'typedef') {
      const type = parser.type();
      idl.typedefs[parser.take()] = type;
    } else {
      parser.take('includes');
      parser.take();
    }
    parser.take(';');
  }
  return idl;
}

/** The members of a dictionary in the order in which WebIDL reads them: those of its base, then by name. */
export function membersOf(idl, name) {
  const { base, members } = idl.dictionaries[name];
  const own = [...members].sort((a, b) => (a.name < b.name ? -1 : 1));
  return base ? [...membersOf(idl, base), ...own] : own;
}
