// The page's end of a worker.

const failure = ({ code, message }) => Object.assign(new Error(message), { code });

/** An object of the worker's. */
export class RemoteObject {
  constructor(number, rest) {
    this.number = number;
    Object.assign(this, rest);
  }
}

/** On a port, which is a Worker's or a MessagePort's. */
export class Remote {
  #port;
  #waiting = new Map(); // {resolve, reject} by id
  #lastId = 0;
  #lastNumber = 0;
  #contexts = new Map(); // what to call when a context is lost
  #threads = []; // the worker's
  #ended = null; // why
  #registry = new FinalizationRegistry((number) => {
    this.#contexts.delete(number);
    this.send('release', [number]);
  });

  constructor(port) {
    this.#port = port;
    port.onmessage = ({ data }) => this.#receive(data);
    port.onerror = (event) => this.end(event.message || 'the worker did not start');
  }

  get hasEnded() {
    return this.#ended !== null;
  }

  newNumber() {
    return ++this.#lastNumber;
  }

  /** Sends a call for whose answer nobody waits. */
  send(name, args, moved = []) {
    if (!this.hasEnded) this.#port.postMessage({ name, args }, moved);
  }

  ask(name, args, moved = []) {
    if (this.hasEnded) return Promise.reject(failure({ code: 'invalid_state', message: this.#ended }));
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId;
      this.#waiting.set(id, { resolve, reject });
      this.#port.postMessage({ id, name, args }, moved);
    });
  }

  /** The new object that a call makes, which is released when nobody holds it. */
  async make(name, args, moved, number = this.newNumber()) {
    const object = new RemoteObject(number, await this.ask(name, [number, ...args], moved));
    this.#registry.register(object, number, object);
    return object;
  }
  /** The worker has freed the object, or soon will. */
  forget(object) {
    this.#registry.unregister(object);
    this.#contexts.delete(object.number);
  }

  onLost(number, listener) {
    this.#contexts.set(number, listener);
  }

  /** Ends all calls of a worker that will not answer, with the reason. */
  end(why) {
    if (this.hasEnded) return;
    this.#ended = why;
    this.#port.terminate?.();
    for (const thread of this.#threads) thread.terminate();
    for (const { reject } of this.#waiting.values())
      reject(failure({ code: 'backend_failure', message: why }));
    this.#waiting.clear();
    for (const listener of this.#contexts.values()) listener(why);
    this.#contexts.clear();
  }

  /** The worker waits for it and hears nothing meanwhile: what fails in it ends the worker. */
  #startThread({ factory, port }) {
    const thread = new Worker(new URL('./thread.js', import.meta.url), {
      type: 'module',
      name: 'em-pthread', // by which Emscripten knows where it is
    });
    thread.onerror = (event) => this.end(`a thread ended: ${event.message || 'it did not start'}`);
    thread.postMessage({ factory, port }, [port]);
    this.#threads.push(thread);
  }

  #receive({ id, value, error, lost, message, ended, thread }) {
    if (this.hasEnded) return; // what was on its way
    if (ended !== undefined) {
      this.end(`the worker ended: ${ended}`);
    } else if (thread !== undefined) {
      this.#startThread(thread);
    } else if (lost !== undefined) {
      this.#contexts.get(lost)?.(message);
    } else {
      const { resolve, reject } = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) reject(failure(error));
      else resolve(value);
    }
  }
}
